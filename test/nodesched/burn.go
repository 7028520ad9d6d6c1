package main

import (
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"os"
	"runtime"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"
)

// functionCore is the core of functions; all else runs on platformCore.
const functionCore, platformCore = 1, 0

// filterVariable names the socket at which the filter hears of calls that begin and end.
const filterVariable = "NODESCHED_FILTER"

// pinnedVariable says that all threads of the function are where they should be.
const pinnedVariable = "NODESCHED_PINNED"

// Priorities in the real-time class, where the filter runs: its own, that of functions that read
// and answer requests, and that of the call that it favours.
const (
	filterPriority  = 90
	servingPriority = 50
	favouredCall    = 30
)

// pin starts this program again with all its threads on the functions' core. With the filter,
// they are above its calls, as if the filter knew of a call before its function runs.
func pin() error {
	runtime.LockOSThread()
	var core unix.CPUSet
	core.Set(functionCore)
	err := unix.SchedSetaffinity(0, &core)
	if err == nil && os.Getenv(filterVariable) != "" {
		err = setScheduler(0, unix.SCHED_FIFO, servingPriority)
	}
	if err != nil {
		return err
	}
	self, err := os.Executable()
	if err != nil {
		return err
	}
	return unix.Exec(self, os.Args, append(os.Environ(), pinnedVariable+"=true"))
}

// burn is the function: it uses processor time.
func burn() error {
	if os.Getenv(pinnedVariable) == "" {
		return pin()
	}
	runtime.GOMAXPROCS(1)
	b := burner{
		from: clock(unix.CLOCK_PROCESS_CPUTIME_ID), wants: sync.OnceValues(ownWants), watched: func() (ended func()) { return func() {} },
	}
	if path := os.Getenv(filterVariable); path != "" {
		filter, err := net.Dial("unixgram", path)
		if err != nil {
			return err
		}
		b.watched = func() func() {
			fmt.Fprintf(filter, "b%d", os.Getpid())
			return func() {
				_ = setScheduler(0, unix.SCHED_FIFO, servingPriority) // it answers, and the filter does so with the others
				fmt.Fprintf(filter, "e%d", os.Getpid())
			}
		}
	}
	var err error
	if b.Listener, err = net.Listen("tcp", net.JoinHostPort("127.0.0.1", os.Getenv("PORT"))); err != nil {
		return err
	}
	return http.Serve(&b.arrivals, &b)
}

// burner answers calls.
type burner struct {
	arrivals
	// from is the processor time at the last answer. Reading and answering is part of a call's work, so that the core has
	// the load that the trace says: what happens after an answer counts for the next call.
	from time.Duration
	// wants is how many calls of its node want to compute.
	wants func() (*atomic.Int64, error)
	// watched tells the filter that a call begins, and ended that it ends.
	watched func() (ended func())
}

// ServeHTTP makes a call, and answers with how long it took, what it has used, when it began, and what of that was used
// before it came and for reading it.
func (b *burner) ServeHTTP(to http.ResponseWriter, r *http.Request) {
	cpu, _ := strconv.Atoi(r.FormValue("cpu"))
	sleep, _ := strconv.Atoi(r.FormValue("sleep"))
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	began, beganAt := time.Now(), clock(unix.CLOCK_MONOTONIC)
	came := b.first()
	read := clock(unix.CLOCK_PROCESS_CPUTIME_ID) - came
	wants, err := b.wants()
	if err := errors.Join(err, noteRun(r)); err != nil {
		http.Error(to, err.Error(), http.StatusInternalServerError)
		return
	}
	ended := b.watched()
	if sleep > 0 {
		time.Sleep(time.Duration(sleep) * time.Microsecond)
	}
	wants.Add(1)
	x := 0 // it is part of the answer, so that the work is done
	for clock(unix.CLOCK_PROCESS_CPUTIME_ID)-b.from < time.Duration(cpu)*time.Microsecond {
		for range 1000 {
			x = x*31 + 7
		}
	}
	wants.Add(-1)
	if err := callNext(r); err != nil {
		http.Error(to, err.Error(), http.StatusBadGateway)
		return
	}
	ended()
	early, used := came-b.from, clock(unix.CLOCK_PROCESS_CPUTIME_ID)-b.from
	b.from += used
	fmt.Fprintf(to, "%d %d %d %d %d %d", time.Since(began).Microseconds(), used.Microseconds(), beganAt, early.Microseconds(), read.Microseconds(), x)
}

// arrivals is a listener that notes what its process had used when a call came.
type arrivals struct {
	net.Listener
	at atomic.Int64 // when the first bytes came since it was asked last; 0 for none
}

// first is the processor time at which the first bytes of a call had come.
func (a *arrivals) first() time.Duration { return time.Duration(a.at.Swap(0)) }

// Accept implements net.Listener.
func (a *arrivals) Accept() (net.Conn, error) {
	c, err := a.Listener.Accept()
	return arriving{c, a}, err
}

// arriving is a connection on which calls come.
type arriving struct {
	net.Conn
	to *arrivals
}

// Read implements net.Conn.
func (c arriving) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	if n > 0 {
		c.to.at.CompareAndSwap(0, int64(clock(unix.CLOCK_PROCESS_CPUTIME_ID)))
	}
	return n, err
}

// callNext makes the next call of a chain, and waits for it.
func callNext(r *http.Request) error {
	depth, _ := strconv.Atoi(r.FormValue("depth"))
	if depth == 0 {
		return nil
	}
	next := r.FormValue("next")
	query := url.Values{"cpu": {r.FormValue("cpu")}, "depth": {strconv.Itoa(depth - 1)}, "next": {next}}
	answer, err := http.Get(next + "?" + query.Encode())
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		return fmt.Errorf("the next call was answered %s", answer.Status)
	}
	return nil
}

// clock reads a clock of the kernel.
func clock(id int32) time.Duration {
	var at unix.Timespec
	_ = unix.ClockGettime(id, &at)
	return time.Duration(at.Nano())
}
