// SPDX-License-Identifier: MIT

// Package main measures Go beside this library: the workloads of workloads.h
// again, by the same command line and with the same line of JSON (harness.c).
//
// GOMAXPROCS is 1: all goroutines share one thread of Go's scheduler, as fibers
// do. The main goroutine is not locked to its thread, for then each switch to
// it would be one between threads, by the kernel; run.py pins the process to a
// core instead. What the runtime's own threads and the garbage collector take
// is counted, as it is CPU time of the process.
package main

import (
	"fmt"
	"os"
	"runtime"
	"sort"
	"strconv"
	"strings"
	"syscall"
	"time"
	"unsafe"
)

// What a row is like: the ROW_... of harness.h.
const (
	rowOnce  = 1
	rowSlow  = 2
	rowCPUMs = 8
	rowDense = 16
)

// One measurement: how many operations to do, what was seen.
type sample struct {
	n, ops int64
	ns     int64
	extra  string // more of the line of JSON
	broken string
	note   string
}

type row struct {
	name, what string
	work       func(s *sample)
	least      int64
	flags      int
}

func check(s *sample, holds bool, text string) {
	if !holds && s.broken == "" {
		s.broken = text
	}
}

// The CPU time of the process, which is what rows are timed by.
func cpuClock() int64 {
	var t syscall.Timespec

	syscall.RawSyscall(syscall.SYS_CLOCK_GETTIME, 2,
		uintptr(unsafe.Pointer(&t)), 0)
	return t.Nano()
}

var begun = time.Now()

// A monotonic clock, for rows in which time has to pass.
func now() int64 {
	return int64(time.Since(begun))
}

// A number of /proc/self/status, such as VmRSS, in bytes.
func memory(name string) float64 {
	status, _ := os.ReadFile("/proc/self/status")
	for _, line := range strings.Split(string(status), "\n") {
		if fields := strings.Fields(line); len(fields) > 1 &&
			fields[0] == name+":" {
			kib, _ := strconv.ParseFloat(fields[1], 64)
			return kib * 1024
		}
	}
	return 0
}

func p99(values []int64) int64 {
	sort.Slice(values, func(a, b int) bool { return values[a] < values[b] })
	last := len(values) - 1
	return values[last-last/100]
}

func repeat(r *row, s *sample, n int64) {
	if n < r.least {
		n = r.least
	}
	*s = sample{n: n, broken: s.broken}
	r.work(s)
}

func measure(r *row, s *sample, enough, count int64) {
	if count > 0 || r.flags&rowOnce != 0 {
		repeat(r, s, count)
		return
	}
	repeat(r, s, 1)
	for s.ns < enough/4 && s.broken == "" {
		repeat(r, s, s.n*4)
	}
	if s.broken == "" {
		repeat(r, s, int64(float64(s.n)*float64(enough)/float64(s.ns)))
	}
}

func report(r *row, s *sample) int {
	each := 0.0
	if s.ops > 0 {
		each = float64(s.ns) / float64(s.ops)
	}
	fmt.Printf(`{"library":"go","version":"%s","compiler":"%s","row":"%s",`+
		`"ops":%d,"ns":%.4f%s`, strings.TrimPrefix(runtime.Version(), "go"),
		runtime.Compiler, r.name, s.ops, each, s.extra)
	if s.note != "" {
		fmt.Printf(`,"note":"%s"`, s.note)
	}
	if s.broken != "" {
		fmt.Printf(`,"broken":"%s"}`+"\n", s.broken)
		return 1
	}
	fmt.Println("}")
	return 0
}

func usage() {
	fmt.Fprintln(os.Stderr,
		"usage: bench_go --list | ROW [--ms MS | --count N]")
	os.Exit(2)
}

func main() {
	const thpDisable = 41
	var s sample
	var enough, count int64 = 40e6, 0

	runtime.GOMAXPROCS(1)
	syscall.RawSyscall6(syscall.SYS_PRCTL, thpDisable, 1, 0, 0, 0, 0)
	args := os.Args[1:]
	if len(args) == 1 && args[0] == "--list" {
		for _, r := range rows {
			fmt.Printf("%s\t%s\t%d\n", r.name, r.what, r.flags)
		}
		return
	}
	if len(args) == 3 {
		value, err := strconv.ParseFloat(args[2], 64)
		switch {
		case err == nil && args[1] == "--ms":
			enough = int64(value * 1e6)
		case err == nil && args[1] == "--count":
			count = int64(value)
		default:
			usage()
		}
	} else if len(args) != 1 {
		usage()
	}
	for i := range rows {
		if rows[i].name == args[0] {
			measure(&rows[i], &s, enough, count)
			os.Exit(report(&rows[i], &s))
		}
	}
	usage()
}
