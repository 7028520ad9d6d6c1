package lab

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// folder is the variable that tells the first process of a lab where to work.
const folder = "WINDLASS_LAB_DIR"

// Inside says whether this process was started by Enter, and in which folder it is to
// work.
func Inside() (dir string, inside bool) { return os.LookupEnv(folder) }

// leaveWithin is how long the lab may take to end when it is told to.
const leaveWithin = time.Minute

// Enter runs this program again, with the same arguments, as the first process of
// namespaces of its own, which works in a folder, and returns its exit status when all of them have ended.
// With ctx it is told to end, and killed if it does not; if this process is
// killed, so are they.
func Enter(ctx context.Context, dir string, environ ...string) (status int, err error) {
	if os.Geteuid() != 0 {
		return 0, errors.New("the lab needs root, for namespaces and firewalls: run it with sudo")
	}
	// The kernel ends the child with the thread that started it.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	cmd := exec.CommandContext(ctx, "/proc/self/exe", os.Args[1:]...)
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	cmd.WaitDelay = leaveWithin
	cmd.Env = append(append(os.Environ(), environ...), folder+"="+dir)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = nil, os.Stdout, os.Stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags: unix.CLONE_NEWNET | unix.CLONE_NEWPID | unix.CLONE_NEWNS,
		Pdeathsig:  syscall.SIGKILL,
	}
	err = cmd.Run()
	if ended := (*exec.ExitError)(nil); errors.As(err, &ended) {
		return ended.ExitCode(), nil
	}
	return 0, errors.Join(err, context.Cause(ctx))
}

// settle makes the namespaces complete: processes as /proc shows them are the
// lab's, and data is a disk in memory, of which no other process knows.
func settle(data string) error {
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return fmt.Errorf("making mounts private: %w", err)
	}
	if err := unix.Mount("proc", "/proc", "proc", 0, ""); err != nil {
		return fmt.Errorf("mounting /proc: %w", err)
	}
	if err := os.MkdirAll(data, 0o755); err != nil {
		return err
	}
	return mountMemory(data, 4<<30)
}

// mountMemory mounts a disk in memory of so many bytes.
func mountMemory(dir string, bytes int64) error {
	if err := unix.Mount("tmpfs", dir, "tmpfs", 0, fmt.Sprintf("size=%d", bytes)); err != nil {
		return fmt.Errorf("mounting %s: %w", dir, err)
	}
	return nil
}
