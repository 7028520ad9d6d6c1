package process

import (
	"errors"
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// childAttr puts a child into the process group pgid, or at the head of a new
// one if that is 0, and lets it die with the thread that forks it.
func childAttr(pgid int) *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pgid: pgid, Pdeathsig: syscall.SIGKILL}
}

// awaitEnd returns when the child has ended, with the function that reaps it. Until then its
// process id and its group's are not reused, so signals cannot reach another process.
func awaitEnd(child *os.Process) (reap func() (*os.ProcessState, error)) {
	for {
		err := unix.Waitid(unix.P_PID, child.Pid, nil, unix.WEXITED|unix.WNOWAIT, nil)
		// Any other error is one of reaping, too, which reports it.
		if !errors.Is(err, unix.EINTR) {
			return child.Wait
		}
	}
}
