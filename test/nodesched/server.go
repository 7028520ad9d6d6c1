package main

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net/http"
	neturl "net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/windlass-dev/windlass/internal/kerneltimer"
	"github.com/windlass-dev/windlass/internal/loadgen"
)

// server is a Windlass in a process of its own.
type server struct {
	dir          string
	gateway, ops string
	cmd          *exec.Cmd
	stdin        io.Closer
	http         *http.Transport
}

// result is what became of a call.
type result struct {
	call
	// predicted is the turnaround that the model has.
	turnaround, predicted, exec, used time.Duration
	// due is when it was to be made, and began when its function began, on the monotonic clock.
	due, began time.Duration
	// late is how long after that it was made.
	late time.Duration
	// early is the part of used that was used before the call came, and read the part for reading it.
	early, read time.Duration
	err         error
}

// startServer starts this program as a Windlass and waits until all instances are ready.
func startServer(self, dir string, p policy, t trace) (_ *server, err error) {
	args := []string{"-serve", p.name, "-dir", dir}
	total := 0
	for name, n := range t.instances {
		args = append(args, fmt.Sprintf("%s=%d", name, n))
		total += n
	}
	cmd := exec.Command(self, args...)
	cmd.Stderr = os.Stderr
	if p.filter {
		cmd.Env = append(os.Environ(), filterVariable+"="+filterSocket(dir))
	}
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
	s := &server{dir: dir, cmd: cmd, stdin: stdin, http: loadgen.NewTransport(1000)}
	line, err := bufio.NewReader(stdout).ReadString('\n')
	if err != nil {
		return nil, errors.Join(fmt.Errorf("the Windlass of policy %s did not start", p.name), s.stop())
	}
	s.gateway, s.ops, _ = strings.Cut(strings.TrimSpace(line), " ")
	if err := s.awaitInstances(total); err != nil {
		return nil, errors.Join(err, s.stop())
	}
	return s, nil
}

func filterSocket(dir string) string { return filepath.Join(dir, "filter") }

// stop ends it and all its processes.
func (s *server) stop() error {
	s.http.CloseIdleConnections()
	_ = s.stdin.Close()
	return s.cmd.Wait()
}

// awaitInstances waits until so many instances are ready.
func (s *server) awaitInstances(n int) error {
	deadline := time.Now().Add(time.Minute)
	for ready := 0; ; {
		text, err := s.metrics()
		if err != nil {
			return err
		}
		if ready = int(sumOf(text, "windlass_scheduler_instances", `state="idle"`)); ready >= n {
			return nil
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("%d of %d instances are ready after a minute", ready, n)
		}
		time.Sleep(100 * time.Millisecond)
	}
}

func (s *server) metrics() (string, error) { return metricsOf(s.ops, s.http) }

// metricsOf reads what a program counts, by the usual transport if none is given.
func metricsOf(ops string, by http.RoundTripper) (string, error) {
	client := http.Client{Transport: by}
	answer, err := client.Get(ops + "/metrics")
	if err != nil {
		return "", err
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	return string(text), err
}

// sumOf is the sum of a metric's series that have a label.
func sumOf(text, name, label string) (sum float64) {
	for line := range strings.Lines(text) {
		if rest, is := strings.CutPrefix(line, name); is && (rest[0] == '{' || rest[0] == ' ') && strings.Contains(rest, label) {
			value, _ := strconv.ParseFloat(strings.TrimSpace(rest[strings.LastIndexByte(rest, ' ')+1:]), 64)
			sum += value
		}
	}
	return sum
}

// replay makes the calls of a trace when they are due, and returns when all have been answered.
func (s *server) replay(t trace) []result {
	results := make([]result, len(t.calls))
	client := http.Client{Transport: s.http, Timeout: 2 * time.Minute}
	wake, err := newDueTimer()
	if err != nil {
		return []result{{err: err}}
	}
	defer wake.timer.Stop()
	var calling sync.WaitGroup
	began, beganAt := time.Now(), clock(unix.CLOCK_MONOTONIC)
	for i, c := range t.calls {
		due := began.Add(c.at)
		wake.sleepUntil(due)
		calling.Go(func() {
			late := time.Since(due)
			r := s.make(&client, c)
			r.turnaround, r.due, r.late = time.Since(due), beganAt+c.at, late
			results[i] = r
		})
	}
	calling.Wait()
	return results
}

// dueTimer wakes up its only user. It is a timer of the kernel: Go's are up to a millisecond late.
type dueTimer struct {
	timer *kerneltimer.Timer
	rings chan struct{}
}

func newDueTimer() (*dueTimer, error) {
	rings := make(chan struct{}, 1)
	timer, err := kerneltimer.New(func() { rings <- struct{}{} })
	return &dueTimer{timer, rings}, err
}

// sleepUntil returns at a time, or at once if that has passed.
func (a *dueTimer) sleepUntil(at time.Time) {
	if left := time.Until(at); left > 0 {
		a.timer.Reset(left)
		<-a.rings
	}
}

// make makes one call.
func (s *server) make(client *http.Client, c call) result {
	r := result{call: c}
	url := fmt.Sprintf("%s/function/%s?cpu=%d&sleep=%d", s.gateway, c.function, c.cpu.Microseconds(), c.sleep.Microseconds())
	if c.depth > 0 {
		url += fmt.Sprintf("&depth=%d&next=%s", c.depth, neturl.QueryEscape(s.gateway+"/function/"+c.function))
	}
	answer, err := client.Get(url)
	if err != nil {
		r.err = err
		return r
	}
	defer answer.Body.Close()
	body, err := io.ReadAll(answer.Body)
	var exec, used, began, early, read int64
	if err == nil && answer.StatusCode == http.StatusOK {
		_, err = fmt.Sscan(string(body), &exec, &used, &began, &early, &read)
	} else if err == nil {
		err = fmt.Errorf("answered %d: %s", answer.StatusCode, body)
	}
	micros := func(n int64) time.Duration { return time.Duration(n) * time.Microsecond }
	r.exec, r.used, r.began, r.err = micros(exec), micros(used), time.Duration(began), err
	r.early, r.read = micros(early), micros(read)
	return r
}

// cpu is the processor time that Windlass and its agents have used by now, without functions.
func (s *server) cpu() (time.Duration, error) {
	sum, err := processTime(s.cmd.Process.Pid)
	if err != nil {
		return 0, err
	}
	agent := filepath.Join(s.dir, "podagent")
	processes, _ := filepath.Glob("/proc/[0-9]*")
	for _, p := range processes {
		if program, err := os.Readlink(filepath.Join(p, "exe")); err == nil && program == agent {
			pid, _ := strconv.Atoi(filepath.Base(p))
			used, err := processTime(pid)
			if err != nil {
				return 0, err
			}
			sum += used
		}
	}
	return sum, nil
}

// processTime reads the clock of a process, which counts nanoseconds.
func processTime(pid int) (time.Duration, error) {
	const allThreads = 2
	var at unix.Timespec
	err := unix.ClockGettime(int32(^pid<<3|allThreads), &at)
	return time.Duration(at.Nano()), err
}

// machine is what the kernel counts.
type machine struct {
	// busy is the processor time that was used, and functions that of the functions' core.
	busy, functions time.Duration
	switches        int64
}

func readMachine() (m machine, err error) {
	text, err := os.ReadFile("/proc/stat")
	for line := range strings.Lines(string(text)) {
		f := strings.Fields(line)
		switch {
		case len(f) > 8 && f[0] == "cpu":
			m.busy = busyOf(f)
		case len(f) > 8 && f[0] == fmt.Sprint("cpu", functionCore):
			m.functions = busyOf(f)
		case len(f) > 1 && f[0] == "ctxt":
			m.switches, _ = strconv.ParseInt(f[1], 10, 64)
		}
	}
	return m, err
}

// busyOf is the time that a line of /proc/stat counts as used, in ticks of 10 ms.
func busyOf(fields []string) (busy time.Duration) {
	for _, i := range []int{1, 2, 3, 6, 7, 8} {
		ticks, _ := strconv.ParseInt(fields[i], 10, 64)
		busy += time.Duration(ticks) * 10 * time.Millisecond
	}
	return busy
}
