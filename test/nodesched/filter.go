package main

import (
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"runtime"
	"runtime/debug"
	"slices"
	"strconv"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// filter is FILTER of SFS as published, on one core: the oldest call that has not used up its
// slice runs in the real-time class, above all others. Calls say themselves when they begin and
// end, and the filter alone changes their class in between, which is that of all threads of their process, as the
// authors' functions have one: Go's own threads in the real-time class, of calls that wait, took the core from the
// call that it favours 50,000 times a second. It is a process of its own, all
// threads of which are in the real-time class: beside the clients, it heard of calls only when the
// fair class had time for the threads of Go that wait for messages. The slice is the mean time between the last 100 arrivals, from 6 ms on, and 20 ms at first,
// as in the authors' code; a call that has waited three slices is left to the fair class.
type filter struct {
	conn  *net.UnixConn
	queue []began
	now   int // the process that runs in the real-time class; 0 for none
	since time.Time
	slice time.Duration
	// arrivals since from.
	arrivals int
	from     time.Time
	demoted  int
	err      error
	done     chan struct{}
}

type began struct {
	process int
	at      time.Time
}

const (
	filterWindow = 100
	leastSlice   = 6 * time.Millisecond
	bypass       = 3
)

// filterProcess is a filter that runs.
type filterProcess struct {
	cmd   *exec.Cmd
	stdin io.Closer
}

// startFilter starts this program as the filter that listens at a socket.
func startFilter(self, path string) (*filterProcess, error) {
	cmd := exec.Command(self, "-filter", path)
	cmd.Stderr = os.Stderr
	stdin, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	p := &filterProcess{cmd: cmd, stdin: stdin}
	if _, err := stdout.Read(make([]byte, 1)); err != nil {
		return nil, errors.Join(fmt.Errorf("the filter did not start: %w", err), p.stop())
	}
	return p, nil
}

func (p *filterProcess) stop() error {
	_ = p.stdin.Close()
	return p.cmd.Wait()
}

// serveFilter is the filter's program. It ends when nothing more can be read.
func serveFilter(path string, until io.Reader, out io.Writer) error {
	if os.Getenv(pinnedVariable) == "" {
		// Threads inherit the class of the one that starts them.
		runtime.LockOSThread()
		if err := setScheduler(0, unix.SCHED_FIFO, filterPriority); err != nil {
			return err
		}
		self, err := os.Executable()
		if err != nil {
			return err
		}
		return unix.Exec(self, os.Args, append(os.Environ(), pinnedVariable+"=true"))
	}
	debug.SetGCPercent(-1)
	conn, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: path, Net: "unixgram"})
	if err != nil {
		return err
	}
	f := &filter{conn: conn, slice: 20 * time.Millisecond, done: make(chan struct{})}
	go f.run()
	fmt.Fprintln(out)
	_, _ = io.Copy(io.Discard, until)
	_ = f.conn.Close()
	<-f.done
	return f.err
}

func (f *filter) run() {
	defer close(f.done)
	var buffer [32]byte
	for {
		deadline := time.Time{}
		if f.now != 0 {
			deadline = f.since.Add(f.slice)
		}
		_ = f.conn.SetReadDeadline(deadline)
		n, err := f.conn.Read(buffer[:])
		now := time.Now()
		switch {
		case err == nil:
			process, _ := strconv.Atoi(string(buffer[1:n]))
			f.hear(now, buffer[0], process)
		case os.IsTimeout(err):
		default:
			return
		}
		if f.now != 0 && now.Sub(f.since) >= f.slice {
			f.leave()
			f.demoted++
		}
		f.next(now)
	}
}

func (f *filter) hear(now time.Time, what byte, process int) {
	if what == 'b' {
		f.arrived(now)
		f.queue = append(f.queue, began{process, now})
		f.set(process, unix.SCHED_NORMAL, 0)
		return
	}
	f.queue = slices.DeleteFunc(f.queue, func(b began) bool { return b.process == process })
	if f.now == process {
		f.now = 0
	}
	f.set(process, unix.SCHED_FIFO, servingPriority)
}

func (f *filter) set(process, class int, priority int32) {
	f.err = errors.Join(f.err, setProcess(process, class, priority))
}

func (f *filter) arrived(now time.Time) {
	if f.arrivals == 0 {
		f.from = now
	}
	if f.arrivals++; f.arrivals > filterWindow {
		f.slice = max(leastSlice, now.Sub(f.from)/filterWindow)
		f.arrivals, f.from = 1, now
	}
}

func (f *filter) leave() {
	f.set(f.now, unix.SCHED_NORMAL, 0)
	f.now = 0
}

func (f *filter) next(now time.Time) {
	for f.now == 0 && len(f.queue) > 0 {
		first := f.queue[0]
		f.queue = f.queue[1:]
		if now.Sub(first.at) >= bypass*f.slice {
			continue
		}
		f.set(first.process, unix.SCHED_FIFO, favouredCall)
		f.now, f.since = first.process, now
	}
}

// setProcess sets the scheduling class of all threads of a process. One that begins meanwhile has the class of the one
// that began it.
func setProcess(pid, class int, priority int32) error {
	for before := -1; ; {
		threads, failed := threadsOf(pid)
		for _, thread := range threads {
			if err := setScheduler(thread, class, priority); !errors.Is(err, unix.ESRCH) {
				failed = errors.Join(failed, err)
			}
		}
		if failed != nil || len(threads) == before {
			return failed
		}
		before = len(threads)
	}
}

// setScheduler sets the scheduling class of a thread; 0 is this one.
func setScheduler(thread, class int, priority int32) error {
	_, _, errno := unix.Syscall(unix.SYS_SCHED_SETSCHEDULER, uintptr(thread), uintptr(class), uintptr(unsafe.Pointer(&priority)))
	if errno != 0 {
		return os.NewSyscallError("sched_setscheduler", errno)
	}
	return nil
}
