package local

import (
	"errors"
	"fmt"
	"io/fs"
	"syscall"
)

// unusable says in plain words why a data folder cannot be used, and what to do.
func unusable(dir string, err error) error {
	place, why := dir, err.Error()
	if at := (*fs.PathError)(nil); errors.As(err, &at) {
		place, why = at.Path, at.Err.Error()
	}
	switch {
	case errors.Is(err, fs.ErrPermission):
		why = "you have no permission to write there"
	case errors.Is(err, syscall.EROFS):
		why = "its file system is read-only"
	case errors.Is(err, syscall.ENOTDIR):
		why = "there is a file where a folder should be"
	case errors.Is(err, syscall.ENOSPC), errors.Is(err, syscall.EDQUOT):
		why = "no space is left there"
	case errors.Is(err, fs.ErrNotExist):
		why = "no folder can be made there"
	}
	return fmt.Errorf("--data-dir %s: Windlass cannot make %s: %s; choose a folder that you can write with --data-dir", dir, place, why)
}
