// SPDX-License-Identifier: MIT

package main

import (
	"context"
	"fmt"
	"runtime"
	"sync"
	"time"

	"golang.org/x/sync/semaphore"
)

// The rows of workloads.h, by what is cheapest in Go. A fiber is a goroutine
// and a WaitGroup to await it by; yield is runtime.Gosched; a semaphore is a
// channel with a token for each permit, which is cheaper than x/sync's Weighted
// and serves in order of arrival too; a weighted one is Weighted; the mutex and
// the waitgroup are sync's. A timeout is a timer and a select: cheaper than a
// context with one, which has a timer too.
//
// The goroutine that was made ready last runs first, and sync.Mutex lets the
// last owner barge in. So the order of steps is noted, not checked.
//
// A goroutine that has run for 10 ms can be interrupted anywhere. None here
// gets to run that long beside another, so plain counters do.

const (
	crowdSize    = 100
	many         = 1000
	aliveAtOnce  = 10000
	reporters    = 100000
	sleeperCount = 100000
	millionCount = 1000000
)

type sem chan struct{}

func newSem(permits, most int64) sem {
	s := make(sem, most)
	for ; permits > 0; permits-- {
		s <- struct{}{}
	}
	return s
}

func (s sem) down() { <-s }
func (s sem) up()   { s <- struct{}{} }

func (s sem) downWithin(d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-s:
		return true
	case <-timer.C:
		return false
	}
}

type fiber struct{ ended sync.WaitGroup }

func (f *fiber) spawn(fn func()) {
	f.ended.Add(1)
	go func() {
		fn()
		f.ended.Done()
	}()
}

func (f *fiber) await() { f.ended.Wait() }

// What the fibers of the row that is being measured share.
var shared struct {
	rounds, steps, again, inside, excess, present, ended int64
	last, owner                                          int
}

func begin(rounds int64) {
	shared.rounds, shared.steps, shared.again = rounds, 0, 0
	shared.inside, shared.excess, shared.present, shared.ended = 0, 0, 0, 0
	shared.last, shared.owner = -1, -1
}

func step(id int) {
	if shared.last == id {
		shared.again++
	}
	shared.last = id
	shared.steps++
}

var gate sem

func waitForStart() {
	shared.present++
	gate.down()
}

// Run n fibers at once, and time them from when the last one is there.
func crowd(s *sample, n int, body func(id int)) {
	fibers := make([]fiber, n)
	gate = newSem(0, int64(n))
	for i := range fibers {
		i := i
		fibers[i].spawn(func() { body(i) })
	}
	for shared.present < int64(n) {
		runtime.Gosched()
	}
	start := cpuClock()
	for range fibers {
		gate.up()
	}
	for i := range fibers {
		fibers[i].await()
	}
	s.ns = cpuClock() - start
	s.ops = shared.rounds * int64(n)
	check(s, shared.excess == 0, "shared.excess == 0")
	check(s, shared.steps == s.ops, "shared.steps == s.ops")
	check(s, shared.ended == int64(n), "shared.ended == n")
	s.note = fmt.Sprintf("order not checked; the same fiber again in %.1f %%",
		100*float64(shared.again)/float64(s.ops))
}

// -- yield --

func yieldLoop(id int) {
	waitForStart()
	for i := shared.rounds; i > 0; i-- {
		step(id)
		runtime.Gosched()
	}
	shared.ended++
}

// The same again, at another address.
func yieldLoop2(id int) {
	waitForStart()
	for i := shared.rounds; i > 0; i-- {
		step(id)
		runtime.Gosched()
	}
	shared.ended++
}

func yieldEither(id int) {
	if id == 0 {
		yieldLoop(id)
	} else {
		yieldLoop2(id)
	}
}

//go:noinline
func yieldInner() int64 {
	runtime.Gosched()
	return 1
}

//go:noinline
func yieldOuter() int64 {
	return yieldInner() + 1
}

func yieldWrappedLoop(id int) {
	var sum int64
	waitForStart()
	for i := shared.rounds; i > 0; i-- {
		step(id)
		sum += yieldOuter()
	}
	if sum == 2*shared.rounds {
		shared.ended++
	}
}

func ofTwo(body func(id int)) func(s *sample) {
	return func(s *sample) {
		begin(s.n / 2)
		crowd(s, 2, body)
	}
}

func yieldMany(s *sample) {
	begin(s.n / many)
	crowd(s, many, yieldLoop)
}

// -- fibers --

func spawnAwait(s *sample) {
	var f fiber
	begin(0)
	start := cpuClock()
	for i := int64(0); i < s.n; i++ {
		f.spawn(func() { shared.ended++ })
		f.await()
	}
	s.ns = cpuClock() - start
	s.ops = s.n
	check(s, shared.ended == s.ops, "shared.ended == s.ops")
}

func alive(s *sample) {
	fibers := make([]fiber, aliveAtOnce)
	times := (s.n + aliveAtOnce - 1) / aliveAtOnce
	begin(0)
	start := cpuClock()
	for k := int64(0); k < times; k++ {
		for i := range fibers {
			fibers[i].spawn(func() {
				runtime.Gosched()
				shared.ended++
			})
		}
		for i := range fibers {
			fibers[i].await()
		}
	}
	s.ns = cpuClock() - start
	s.ops = times * aliveAtOnce
	check(s, shared.ended == s.ops, "shared.ended == s.ops")
}

// A million that are parked; see million.h.
func million(s *sample) {
	fibers := make([]fiber, millionCount)
	gate = newSem(0, millionCount)
	begin(0)
	for i := range fibers {
		fibers[i] = fiber{} // ours: in memory now
	}
	rss, tables := memory("VmRSS"), memory("VmPTE")
	start := cpuClock()
	for i := range fibers {
		fibers[i].spawn(func() {
			waitForStart()
			shared.ended++
		})
	}
	for shared.present < millionCount {
		runtime.Gosched()
	}
	s.ns = cpuClock() - start
	s.ops = millionCount
	s.extra = fmt.Sprintf(`,"rss":%.3f,"tables":%.3f`,
		(memory("VmRSS")-rss)/millionCount,
		(memory("VmPTE")-tables)/millionCount)
	for range fibers {
		gate.up()
	}
	for i := range fibers {
		fibers[i].await()
	}
	check(s, shared.ended == millionCount, "shared.ended == MILLION")
	s.note = "no C stacks: it grows them from 2 KiB; order not checked"
}

// -- semaphore --

func semFree(s *sample) {
	pool := newSem(1, 1)
	start := cpuClock()
	for i := int64(0); i < s.n; i++ {
		pool.down()
		pool.up()
	}
	s.ns = cpuClock() - start
	s.ops = s.n
	check(s, len(pool) == 1, "the permit is back")
	s.note = "a channel with a token"
}

var balls [2]sem

func throwAndCatch(id int) {
	mine, theirs := balls[id], balls[1-id]
	waitForStart()
	for i := shared.rounds; i > 0; i-- {
		mine.down()
		step(id)
		theirs.up()
	}
	shared.ended++
}

func throwAndCatchInTime(id int) {
	mine, theirs := balls[id], balls[1-id]
	waitForStart()
	for i := shared.rounds; i > 0; i-- {
		if !mine.downWithin(time.Second) {
			shared.excess++
		}
		step(id)
		theirs.up()
	}
	shared.ended++
}

// The ball goes to and fro: here the order is checked.
func pingPong(body func(id int)) func(s *sample) {
	return func(s *sample) {
		balls = [2]sem{newSem(1, 1), newSem(0, 1)}
		begin(s.n / 2)
		crowd(s, 2, body)
		check(s, shared.again == 0, "shared.again == 0")
		s.note = ""
	}
}

func weightedFree(s *sample) {
	pool := semaphore.NewWeighted(10)
	ctx := context.Background()
	failures := 0
	start := cpuClock()
	for i := int64(0); i < s.n; i++ {
		if pool.Acquire(ctx, 3) != nil {
			failures++
		}
		pool.Release(3)
	}
	s.ns = cpuClock() - start
	s.ops = s.n
	check(s, failures == 0, "failures == 0")
}

func weightedCrowd(s *sample) {
	pool := semaphore.NewWeighted(10)
	ctx := context.Background()
	begin(s.n / crowdSize)
	crowd(s, crowdSize, func(id int) {
		waitForStart()
		for i := shared.rounds; i > 0; i-- {
			if pool.Acquire(ctx, 3) != nil {
				shared.excess++
			}
			step(id)
			shared.inside += 3
			if shared.inside > 10 {
				shared.excess++
			}
			runtime.Gosched()
			shared.inside -= 3
			pool.Release(3)
		}
		shared.ended++
	})
}

// -- mutex and waitgroup --

func mutexFree(s *sample) {
	var lock sync.Mutex
	start := cpuClock()
	for i := int64(0); i < s.n; i++ {
		lock.Lock()
		lock.Unlock()
	}
	s.ns = cpuClock() - start
	s.ops = s.n
}

func mutexCrowd(s *sample) {
	var lock sync.Mutex
	begin(s.n / crowdSize)
	crowd(s, crowdSize, func(id int) {
		waitForStart()
		for i := shared.rounds; i > 0; i-- {
			lock.Lock()
			step(id)
			if shared.owner != -1 {
				shared.excess++
			}
			shared.owner = id
			runtime.Gosched()
			if shared.owner != id {
				shared.excess++
			}
			shared.owner = -1
			lock.Unlock()
		}
		shared.ended++
	})
	s.note = fmt.Sprintf("barges: the last owner again in %.1f %%",
		100*float64(shared.again)/float64(s.ops))
}

func waitgroupMany(s *sample) {
	times := (s.n + reporters - 1) / reporters
	begin(0)
	start := cpuClock()
	for k := int64(1); k <= times; k++ {
		var group sync.WaitGroup
		for i := 0; i < reporters; i++ {
			group.Add(1)
			go func() {
				shared.ended++
				group.Done()
			}()
		}
		group.Wait()
		check(s, shared.ended == k*reporters, "shared.ended == k * REPORTERS")
	}
	s.ns = cpuClock() - start
	s.ops = times * reporters
}

// -- time --

func timeoutFree(d time.Duration) func(s *sample) {
	return func(s *sample) {
		thing := newSem(1, 1)
		late := int64(0)
		start := cpuClock()
		for i := int64(0); i < s.n; i++ {
			if thing.downWithin(d) {
				thing.up()
			} else {
				late++
			}
		}
		s.ns = cpuClock() - start
		s.ops = s.n
		check(s, late <= s.ops/1000, "late <= s.ops / 1000")
		s.note = "a timer and a select"
	}
}

func sleepers(s *sample) {
	const ms = int64(time.Millisecond)
	fibers := make([]fiber, sleeperCount)
	lateness := make([]int64, sleeperCount)
	begin(0)
	gate = newSem(0, sleeperCount)
	start := cpuClock()
	for i := range fibers {
		i := i
		fibers[i].spawn(func() {
			duration := (1 + int64(i)*7919%1000) * ms
			waitForStart()
			began := now()
			time.Sleep(time.Duration(duration))
			lateness[i] = now() - began - duration
			if lateness[i] < 0 {
				shared.excess++
			}
			shared.ended++
		})
	}
	for shared.present < sleeperCount {
		runtime.Gosched()
	}
	allThere := cpuClock()
	for range fibers {
		gate.up()
	}
	for i := range fibers {
		fibers[i].await()
	}
	s.ns = cpuClock() - start
	s.ops = sleeperCount
	s.extra = fmt.Sprintf(`,"start_ms":%.3f,"p99_ms":%.3f`,
		float64(allThere-start)/1e6, float64(p99(lateness))/1e6)
	check(s, shared.ended == sleeperCount, "shared.ended == SLEEPERS")
	check(s, shared.excess == 0, "shared.excess == 0")
}

var rows = []row{
	{"yield-same", "yield, 2 fibers, same code", ofTwo(yieldLoop), 2, 0},
	{"yield-different", "yield, 2 fibers, different code", ofTwo(yieldEither),
		2, 0},
	{"yield-wrapped", "yield, 2 fibers, inside two wrappers",
		ofTwo(yieldWrappedLoop), 2, 0},
	{"yield-1000", "yield, 1,000 fibers", yieldMany, 10 * many, 0},
	{"spawn-await", "spawn + await, child ends at once", spawnAwait, 1, 0},
	{"alive-warm", "10,000 fibers alive, all awaited, warm", alive,
		2 * aliveAtOnce, 0},
	{"alive-cold", "10,000 fibers alive, all awaited, cold", alive, 1, rowOnce},
	{"sem-free", "semaphore, free: down + up", semFree, 1, 0},
	{"sem-handoff", "semaphore hand-off", pingPong(throwAndCatch), 2, 0},
	{"mutex-free", "mutex, free: lock + unlock", mutexFree, 1, 0},
	{"mutex-100", "mutex, 100 fibers, yield while holding", mutexCrowd,
		10 * crowdSize, 0},
	{"weighted-free", "weighted, free: 3 of 10", weightedFree, 1, 0},
	{"weighted-100", "weighted, 100 fibers want 3 of 10, yield", weightedCrowd,
		10 * crowdSize, 0},
	{"waitgroup", "waitgroup, 100,000 fibers report", waitgroupMany, 1, 0},
	{"timeout-free-1s", "timeout (1 s) around what need not wait",
		timeoutFree(time.Second), 1, 0},
	{"timeout-free-10ms", "timeout (10 ms) around what need not wait",
		timeoutFree(10 * time.Millisecond), 1, 0},
	{"timeout-armed", "timeout armed, hand-off, disarmed",
		pingPong(throwAndCatchInTime), 2, 0},
	{"sleepers", "100,000 sleepers, 1..1000 ms", sleepers, 1,
		rowOnce | rowCPUMs},
	{"million", "1,000,000 fibers parked: create one", million, 1,
		rowOnce | rowSlow | rowDense},
	{"tcp-echo", "TCP echo, 64 connections, one message", tcpEcho, 12800,
		rowSlow},
}
