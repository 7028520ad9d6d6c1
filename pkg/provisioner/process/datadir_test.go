package process

import (
	"errors"
	"io/fs"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

func TestAFolderIsInUseOnlyIfAnotherHasTheLock(t *testing.T) {
	for errno, want := range map[syscall.Errno]error{
		unix.EWOULDBLOCK: ErrInUse,
		unix.ENOLCK:      ErrUnusable,
		unix.EOPNOTSUPP:  ErrUnusable,
	} {
		err := lockError("data", "data/instances.lock", errno)
		if !errors.Is(err, want) || !errors.Is(err, errno) {
			t.Errorf("flock says %v: got %v, want %v", errno, err, want)
		}
		var at *fs.PathError
		if want == ErrUnusable && (!errors.As(err, &at) || at.Path != "data/instances.lock") {
			t.Errorf("flock says %v: %v does not name the file", errno, err)
		}
	}
}
