package process

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/windlass-dev/windlass/pkg/provisioner"
)

// ErrInUse is returned by New for a data folder that another Driver uses.
var ErrInUse = errors.New("is in use by another process")

// ErrUnusable is returned by New for a data folder that cannot be made, written or locked. It
// comes with the *fs.PathError that says why.
var ErrUnusable = errors.New("cannot be used")

// lockDataDir locks the folder until the returned file is closed, and removes the remains of a
// predecessor's instances. The lock ends with its process, so the predecessor of its holder is
// dead.
func lockDataDir(dataDir string) (*os.File, error) {
	instances := filepath.Join(dataDir, "instances")
	if err := os.MkdirAll(instances, 0o700); err != nil {
		return nil, fmt.Errorf("process: DataDir %s %w: %w", dataDir, ErrUnusable, err)
	}
	lock, err := os.OpenFile(filepath.Join(dataDir, "instances.lock"), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, fmt.Errorf("process: DataDir %s %w: %w", dataDir, ErrUnusable, err)
	}
	if err := unix.Flock(int(lock.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		return nil, errors.Join(lockError(dataDir, lock.Name(), err), lock.Close())
	}
	if err := removeChildren(instances); err != nil {
		return nil, errors.Join(fmt.Errorf("process: removing what a predecessor left: %w", err), lock.Close())
	}
	return lock, nil
}

// lockError is what an error of flock says about the folder. A file system without locks, such as
// some of networks, is not in use.
func lockError(dataDir, lock string, err error) error {
	if errors.Is(err, unix.EWOULDBLOCK) {
		return fmt.Errorf("process: DataDir %s %w: stop that one or choose another folder: %w", dataDir, ErrInUse, err)
	}
	return fmt.Errorf("process: DataDir %s %w: %w", dataDir, ErrUnusable, &fs.PathError{Op: "flock", Path: lock, Err: err})
}

func removeChildren(dir string) error {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	var errs []error
	for _, e := range entries {
		errs = append(errs, os.RemoveAll(filepath.Join(dir, e.Name())))
	}
	return errors.Join(errs...)
}

func workDir(dataDir string, spec provisioner.InstanceSpec) string {
	return filepath.Join(dataDir, "instances", string(spec.Function.UID)+"-"+string(spec.CID))
}

// checkNames refuses names that would lead out of the data folder.
func checkNames(spec provisioner.InstanceSpec) error {
	for _, n := range []struct{ field, value string }{
		{"namespace", spec.Function.Namespace},
		{"name", spec.Function.Name},
		{"uid", string(spec.Function.UID)},
		{"instance id", string(spec.CID)},
	} {
		if n.value == "" || n.value == "." || n.value == ".." || strings.ContainsAny(n.value, "/\x00") {
			return fmt.Errorf("the function's %s %q cannot name a folder", n.field, n.value)
		}
	}
	return nil
}
