// SPDX-License-Identifier: MIT

package main

import (
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
)

// Row tcp-echo: see echo.h and echo_setup.h.

const (
	connections = 64
	message     = 64
)

type echo struct {
	client *exec.Cmd
	start  io.WriteCloser
	conns  []net.Conn
}

// Start the client, which lies beside this executable, and accept what it
// connects to each.
func openEcho(each int64) (*echo, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	listener, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	defer listener.Close()
	e := &echo{}
	port := listener.Addr().(*net.TCPAddr).Port
	e.client = exec.Command(filepath.Join(filepath.Dir(self), "echo_client"),
		strconv.Itoa(port), strconv.Itoa(connections),
		strconv.FormatInt(each, 10))
	e.client.Stderr = os.Stderr
	if e.start, err = e.client.StdinPipe(); err != nil {
		return nil, err
	}
	if err = e.client.Start(); err != nil {
		return nil, err
	}
	for i := 0; i < connections; i++ {
		conn, err := listener.Accept()
		if err != nil {
			return nil, err
		}
		e.conns = append(e.conns, conn)
	}
	return e, nil
}

func tcpEcho(s *sample) {
	var fibers [connections]fiber
	var echoed, failures int64

	begin(0)
	each := (s.n + connections - 1) / connections
	e, err := openEcho(each)
	if err != nil {
		check(s, false, "there is no client")
		return
	}
	start, cpu := now(), cpuClock()
	for i := range fibers {
		conn := e.conns[i]
		fibers[i].spawn(func() {
			buffer := make([]byte, message)
			for {
				n, err := conn.Read(buffer)
				if err != nil {
					if err != io.EOF {
						failures++
					}
					break
				}
				if _, err = conn.Write(buffer[:n]); err != nil {
					failures++
				}
				echoed += int64(n)
			}
			conn.Close()
			shared.ended++
		})
	}
	io.WriteString(e.start, "go\n")
	for i := range fibers {
		fibers[i].await()
	}
	s.ns = now() - start
	s.ops = each * connections
	s.extra = fmt.Sprintf(`,"cpu_ns":%.3f`,
		float64(cpuClock()-cpu)/float64(s.ops))
	check(s, e.client.Wait() == nil, "echo_end(&echo) == 0")
	check(s, failures == 0, "shared.failures == 0")
	check(s, shared.ended == connections, "shared.ended == CONNECTIONS")
	check(s, echoed == s.ops*message, "echoed == s->ops * MESSAGE")
}
