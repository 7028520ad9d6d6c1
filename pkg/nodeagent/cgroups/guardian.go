package cgroups

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"syscall"
	"time"
)

// RunGuardian waits until the node agent at the other end of the pipe is gone, however that
// happened, and then sets all groups to normal that its journal has. If another node agent has
// taken the journal over by then, it has done so itself.
func RunGuardian(pipe io.Reader, journal string) error {
	_, _ = io.Copy(io.Discard, pipe) // an error is an end, too
	return restoreLeft(journal)
}

// restoreLeft sets all groups to normal that the journal of a node agent has that is gone.
func restoreLeft(journal string) error {
	lock, err := lockFor(journal)
	if errors.Is(err, syscall.EWOULDBLOCK) || errors.Is(err, fs.ErrNotExist) {
		return nil // somebody else sees to it, or there is no journal
	}
	if err != nil {
		return err
	}
	j := &Journal{path: journal, lock: lock}
	restored := j.restoreAll()
	return errors.Join(restored, j.rewrite(), j.Close())
}

// Watch runs a node agent as a child of this process, and returns its end. Then all groups are
// normal that its journal has, also if it was killed. So the first process of a container, whose
// end is that of all others, outlives what may go wrong. When ctx ends, the child is to end in
// order within some time. A child that has groups in its journal and shows no Life for 2 s is killed.
func Watch(ctx context.Context, command *exec.Cmd, journal string, within time.Duration) error {
	its, ours, err := os.Pipe()
	if err != nil {
		return err
	}
	command.ExtraFiles = append(command.ExtraFiles, ours)
	if err := command.Start(); err != nil {
		return errors.Join(err, ours.Close(), its.Close())
	}
	_ = ours.Close() // the child has it
	stop := context.AfterFunc(ctx, func() {
		_ = command.Process.Signal(syscall.SIGTERM)
		time.AfterFunc(within, func() { _ = command.Process.Kill() })
	})
	defer stop()
	hung := listen(its, func() { _ = command.Process.Kill() })
	restored := restoreLeft(journal)
	return errors.Join(hung, command.Wait(), restored, its.Close())
}

// Guardian is a process that runs RunGuardian for this one.
type Guardian struct {
	pipe *os.File
	gone chan struct{}
	err  error // of the process; written before gone is closed
}

// StartGuardian starts a command that calls RunGuardian with its standard input, in a process
// group of its own, so that what a terminal ends is the node agent first. Start it when the
// journal is open.
func StartGuardian(command *exec.Cmd) (*Guardian, error) {
	its, ours, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	defer its.Close()
	command.Stdin = its
	if command.SysProcAttr == nil {
		command.SysProcAttr = &syscall.SysProcAttr{}
	}
	command.SysProcAttr.Setpgid = true
	if err := command.Start(); err != nil {
		return nil, errors.Join(err, ours.Close())
	}
	g := &Guardian{pipe: ours, gone: make(chan struct{})}
	go func() {
		g.err = command.Wait()
		close(g.gone)
	}()
	return g, nil
}

// Gone is closed once the guardian has ended. While the node agent runs, it must not.
func (g *Guardian) Gone() <-chan struct{} { return g.gone }

// Close lets the guardian restore what is left and end, and waits for it. Close the journal
// before.
func (g *Guardian) Close() error {
	if err := g.pipe.Close(); err != nil {
		return err
	}
	<-g.gone
	return g.err
}
