//go:build !linux

package process

import (
	"os"
	"syscall"
)

// childAttr puts a child into the process group pgid, or at the head of a new
// one if that is 0.
func childAttr(pgid int) *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pgid: pgid}
}

// awaitEnd returns when the child has ended, with the function that tells how.
func awaitEnd(child *os.Process) (reap func() (*os.ProcessState, error)) {
	state, err := child.Wait()
	return func() (*os.ProcessState, error) { return state, err }
}
