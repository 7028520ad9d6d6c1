package cli

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

const (
	// lockTime is how long a lock is awaited. Its holder writes one file, unless it is stopped.
	lockTime = 10 * time.Second
	// lockEvery is how often it is tried.
	lockEvery = 20 * time.Millisecond
)

// lockedError says that another process has held a lock for lockTime.
type lockedError struct {
	// pid is the process, or empty if it has not written that.
	pid string
}

// Error names the holder and the remedy. A stopped process does not take another signal.
func (e *lockedError) Error() string {
	return fmt.Sprintf("process %s has had it locked for %v: continue that with fg if it was stopped with Ctrl-Z, or end it with kill -9 %[1]s",
		cmp.Or(e.pid, "(unknown)"), lockTime)
}

// lockFile makes a file and waits until nobody else has it locked, or fails with a *lockedError. The
// lock ends with unlock, or with the process.
func lockFile(path string) (unlock func(), err error) {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return nil, err
	}
	file, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	began := time.Now()
	for {
		err = unix.Flock(int(file.Fd()), unix.LOCK_EX|unix.LOCK_NB)
		switch {
		case err == nil:
			// The content serves only the error of those who wait.
			_ = file.Truncate(0)
			_, _ = file.WriteAt([]byte(strconv.Itoa(os.Getpid())), 0)
			return func() { _ = file.Close() }, nil
		case errors.Is(err, unix.EINTR):
			continue
		case errors.Is(err, unix.EWOULDBLOCK) && time.Since(began) < lockTime:
			time.Sleep(lockEvery)
			continue
		case errors.Is(err, unix.EWOULDBLOCK):
			pid, _ := io.ReadAll(file)
			err = &lockedError{strings.TrimSpace(string(pid))}
		}
		return nil, errors.Join(err, file.Close())
	}
}
