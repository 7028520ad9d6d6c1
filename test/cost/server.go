package main

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/windlass-dev/windlass/internal/loadgen"
	"github.com/windlass-dev/windlass/internal/proctime"
	"github.com/windlass-dev/windlass/internal/sleep"
)

// maxClients is how many connections are kept.
const maxClients = 64

// server is a Windlass in a process of its own.
type server struct {
	name  string
	agent string // the program of its agents
	url   string
	cmd   *exec.Cmd
	stdin io.Closer
	http  *http.Transport
}

// cost is the CPU time of some calls.
type cost struct {
	cpu   time.Duration
	calls int64
}

// perCall is in seconds.
func (c cost) perCall() float64 { return c.cpu.Seconds() / float64(c.calls) }

// start starts this program as a Windlass and waits until its function answers.
func start(self, name, dir, collector string) (*server, error) {
	cmd := exec.Command(self, "-serve", name, "-dir", dir)
	cmd.Stderr = os.Stderr
	cmd.Env = append(os.Environ(), collectorVariable+"="+collector)
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
	s := &server{name: name, agent: filepath.Join(dir, "podagent"), cmd: cmd, stdin: stdin, http: loadgen.NewTransport(maxClients)}
	url, err := bufio.NewReader(stdout).ReadString('\n')
	if err != nil {
		return nil, fmt.Errorf("the Windlass %s did not start: %w", name, s.stop())
	}
	s.url = strings.TrimSpace(url)
	return s, nil
}

// stop ends it and all its processes.
func (s *server) stop() error {
	s.http.CloseIdleConnections()
	_ = s.stdin.Close()
	if err := s.cmd.Wait(); err != nil {
		return fmt.Errorf("the Windlass %s: %w", s.name, err)
	}
	return nil
}

// measure calls the function in closed loops for a while. What the calls cost is the
// CPU time of Windlass and its agents.
func (s *server) measure(clients int, span time.Duration) (cost, error) {
	before, err := s.cpu()
	if err != nil {
		return cost{}, err
	}
	client := loadgen.Client{Transport: s.http}
	made, err := makeCalls(clients, span, func(ctx context.Context) error { return call(ctx, client, s.url) })
	if err != nil {
		return cost{}, fmt.Errorf("the Windlass %s: %w", s.name, err)
	}
	after, err := s.cpu()
	if err != nil {
		return cost{}, err
	}
	return cost{after - before, made}, nil
}

// makeCalls makes calls in closed loops for a while, and returns how many. The first that fails ends it: if
// Windlass has ended, all others fail at once.
func makeCalls(clients int, span time.Duration, call func(context.Context) error) (int64, error) {
	ctx, fail := context.WithCancelCause(context.Background())
	defer fail(nil)
	l := loadgen.Start(ctx, loadgen.Config[struct{}]{
		Clients: clients,
		Next: func(loadgen.Turn) func(context.Context) struct{} {
			return func(ctx context.Context) struct{} {
				if err := call(ctx); err != nil {
					fail(err)
				}
				return struct{}{}
			}
		},
	})
	sleep.For(ctx, span)
	made := l.Stop()
	return int64(len(made)), context.Cause(ctx)
}

func call(ctx context.Context, client loadgen.Client, url string) error {
	c := client.Do(ctx, loadgen.Request{Method: http.MethodGet, URL: url, Resend: true})
	if c.Err == nil && c.Status != http.StatusOK {
		return fmt.Errorf("answered %d", c.Status)
	}
	return c.Err
}

// cpu is the time that its processes have used by now.
func (s *server) cpu() (time.Duration, error) {
	sum, err := proctime.CPU(s.cmd.Process.Pid)
	if err != nil {
		return 0, err
	}
	agents := 0
	processes, _ := filepath.Glob("/proc/[0-9]*")
	for _, p := range processes {
		if program, err := os.Readlink(filepath.Join(p, "exe")); err != nil || program != s.agent {
			continue
		}
		pid, _ := strconv.Atoi(filepath.Base(p))
		used, err := proctime.CPU(pid)
		if err != nil {
			return 0, err
		}
		sum += used
		agents++
	}
	if agents == 0 {
		return 0, fmt.Errorf("found no process of %s", s.agent)
	}
	return sum, nil
}
