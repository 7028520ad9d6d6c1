package lab

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"syscall"
	"time"

	"github.com/windlass-dev/windlass/internal/sleep"
)

// Program says what to start.
type Program struct {
	Path      string
	Arguments []string
	Environ   []string
	// Log is the file that its output is appended to, unless Sink is another
	// place.
	Log  string
	Sink Sink
}

// Process is a program that was started.
type Process struct {
	PID   int
	cmd   *exec.Cmd
	ended chan struct{}
}

// Start starts a program in the space.
func (s *Space) Start(p Program) (*Process, error) {
	log, err := os.OpenFile(p.Log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return nil, err
	}
	defer log.Close()
	cmd := exec.Command(p.Path, p.Arguments...)
	cmd.Env = p.Environ
	cmd.Stdout, cmd.Stderr = log, log
	if p.Sink.write != nil {
		cmd.Stdout, cmd.Stderr = p.Sink.write, p.Sink.write
	}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := s.Do(cmd.Start); err != nil {
		return nil, fmt.Errorf("starting %s in %s: %w", p.Path, s.Name, err)
	}
	process := &Process{PID: cmd.Process.Pid, cmd: cmd, ended: make(chan struct{})}
	go func() {
		_ = cmd.Wait()
		close(process.ended)
	}()
	return process, nil
}

// Ended is closed when the process has ended.
func (p *Process) Ended() <-chan struct{} { return p.ended }

// Alive says whether the process has not ended.
func (p *Process) Alive() bool {
	select {
	case <-p.ended:
		return false
	default:
		return true
	}
}

// ExitCode is that of a process that has ended; 128 and the signal if one ended it.
func (p *Process) ExitCode() int {
	status, ok := p.cmd.ProcessState.Sys().(syscall.WaitStatus)
	if ok && status.Signaled() {
		return 128 + int(status.Signal())
	}
	return p.cmd.ProcessState.ExitCode()
}

// Signal sends a signal, unless the process has ended.
func (p *Process) Signal(signal syscall.Signal) { _ = p.cmd.Process.Signal(signal) }

// Kill ends the process without a word, and returns when it has ended.
func (p *Process) Kill() {
	p.Signal(syscall.SIGKILL)
	<-p.ended
}

// Stop asks the process to end, and kills it with ctx.
func (p *Process) Stop(ctx context.Context) error {
	p.Signal(syscall.SIGTERM)
	select {
	case <-p.ended:
		return nil
	case <-ctx.Done():
		p.Kill()
		return fmt.Errorf("pid %d did not end when told to: %w", p.PID, context.Cause(ctx))
	}
}

// Starve lets the process run for only this share of the time until ctx ends, in
// periods of 100 ms, as a limit on its CPU does.
func (p *Process) Starve(ctx context.Context, share float64) {
	const period = 100 * time.Millisecond
	on := time.Duration(share * float64(period))
	defer p.Signal(syscall.SIGCONT)
	for ctx.Err() == nil && p.Alive() {
		p.Signal(syscall.SIGSTOP)
		sleep.For(ctx, period-on)
		p.Signal(syscall.SIGCONT)
		sleep.For(ctx, on)
	}
}
