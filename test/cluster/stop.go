package cluster

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/windlass-dev/windlass/internal/sleep"
)

// Stop ends the cluster and removes everything it has made on this machine. It
// also clears up after a cluster whose starter was killed. Containers get no time
// to end; who wants that deletes the pods before. To stop twice is no error.
func (c *Cluster) Stop(ctx context.Context) error {
	c.stopping.Lock()
	defer c.stopping.Unlock()
	if c.stopped {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	if c.lock == nil {
		lock, err := acquire(c.layout)
		if err != nil {
			return err
		}
		c.lock = lock
	}
	c.mu.Lock()
	r := c.record
	c.mu.Unlock()
	if err := c.end(ctx, r.running()); err != nil {
		return err
	}
	if err := sweep(ctx, c.layout, r); err != nil {
		return err
	}
	if err := os.RemoveAll(c.layout.state); err != nil {
		return err
	}
	c.stopped = true
	c.launcher.close()
	return c.lock.Close()
}

// sweep removes what is left when a cluster's processes have ended. The lock
// stays, because it is held.
func sweep(ctx context.Context, l layout, r record) error {
	if r.Range != 0 {
		if err := removeLink(ctx, r.Range); err != nil {
			return err
		}
		if err := removeCgroups(ctx, cgroup(r.Range)); err != nil {
			return err
		}
	}
	entries, err := os.ReadDir(l.state)
	if err != nil {
		return err
	}
	var errs []error
	for _, entry := range entries {
		if path := filepath.Join(l.state, entry.Name()); path != l.lock() {
			errs = append(errs, os.RemoveAll(path))
		}
	}
	return errors.Join(errs...)
}

// removeCgroups removes a cgroup and those below it, which do not end with their
// processes, from all hierarchies of either version.
func removeCgroups(ctx context.Context, name string) error {
	v2, _ := filepath.Glob("/sys/fs/cgroup" + name)
	v1, _ := filepath.Glob("/sys/fs/cgroup/*" + name)
	for _, root := range append(v1, v2...) {
		for {
			err := removeTree(root)
			if err == nil {
				break
			}
			// A cgroup stays busy for a moment after its last process has ended.
			if !sleep.For(ctx, 20*time.Millisecond) {
				gone := context.Cause(ctx)
				return fmt.Errorf("removing cgroups: %w; %w", gone, err)
			}
		}
	}
	return nil
}

// removeTree removes folders from the leaves up; the files in a cgroup's folder
// are not removed, and do not keep it.
func removeTree(root string) error {
	var folders []string
	err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if err == nil && entry.IsDir() {
			folders = append(folders, path)
		}
		return err
	})
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	for _, folder := range slices.Backward(folders) {
		if err := os.Remove(folder); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return nil
}
