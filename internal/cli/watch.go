package cli

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"syscall"
	"time"

	"github.com/fsnotify/fsnotify"

	"github.com/windlass-dev/windlass/api/v1alpha1"
	"github.com/windlass-dev/windlass/pkg/catalog/file"
)

// settleTime is how long after a first change others are gathered: an editor writes a file
// several times, and a checkout writes many.
const settleTime = 200 * time.Millisecond

// fileWatch is what is watched for some paths.
type fileWatch struct {
	*fsnotify.Watcher
	// paths says what to watch, by what is in the files now.
	paths func() []string
	// folders are watched for what happens to the files in them.
	folders map[string]bool
	// named are paths that matter themselves, whatever they are called: they come and go.
	named map[string]bool
}

// openWatch watches files. run hears of all changes from now on. The caller closes the watch.
func openWatch(paths func() []string) (*fileWatch, error) {
	watcher, err := fsnotify.NewWatcher()
	if err != nil {
		return nil, cannotWatch(runtime.GOOS, err)
	}
	w := &fileWatch{Watcher: watcher, paths: paths}
	if err := w.replace(paths()); err != nil {
		return nil, errors.Join(err, watcher.Close())
	}
	return w, nil
}

// run calls changed with the files that have changed, until ctx ends; with none if it missed which.
// It asks for the paths again before each time, and failed hears of what cannot be watched then.
// Changes while changed runs are not missed.
func (w *fileWatch) run(ctx context.Context, changed func(files []string), failed func(error)) {
	settled := time.NewTimer(time.Hour)
	settled.Stop()
	defer settled.Stop()
	// first is what happened first to each file since the last call. Without a map, nothing has.
	var first map[string]fsnotify.Op
	missed := false
	begin := func() {
		if first == nil {
			first = make(map[string]fsnotify.Op)
			settled.Reset(settleTime)
		}
	}
	for {
		select {
		case <-ctx.Done():
			return
		case event := <-w.Events:
			if !w.isRelevant(event) {
				continue
			}
			begin()
			if _, known := first[event.Name]; !known {
				first[event.Name] = event.Op
			}
		case _, open := <-w.Errors:
			if !open {
				return
			}
			begin()
			missed = true
		case <-settled.C:
			files, unknown := lasting(first), missed
			first, missed = nil, false
			// A folder that is new is watched before its files are read, or what is written
			// into it in between would be missed.
			if err := w.replace(w.paths()); err != nil {
				failed(err)
			}
			switch {
			case unknown:
				changed(nil)
			case len(files) > 0:
				changed(files)
			}
		}
	}
}

// lasting are the files of changes that are still there to see, sorted: not those that came and
// are gone, such as the temporary ones of a program that replaces a file.
func lasting(first map[string]fsnotify.Op) []string {
	return slices.DeleteFunc(slices.Sorted(maps.Keys(first)), func(path string) bool {
		_, err := os.Lstat(path)
		return first[path].Has(fsnotify.Create) && errors.Is(err, fs.ErrNotExist)
	})
}

// replace watches paths, the folders in them, and nothing else. It watches what it can before
// it fails.
func (w *fileWatch) replace(paths []string) error {
	w.folders, w.named = make(map[string]bool), make(map[string]bool)
	var errs []error
	for _, path := range paths {
		path, err := filepath.Abs(path)
		if err == nil {
			err = w.watch(path)
		}
		if err != nil {
			errs = append(errs, cannotWatch(runtime.GOOS, err))
		}
	}
	for _, at := range w.WatchList() {
		if !w.folders[at] && !w.awaits(at) {
			// It may be gone already.
			_ = w.Remove(at)
		}
	}
	return errors.Join(errs...)
}

// awaits reports whether a folder is watched for a path in it to come or go.
func (w *fileWatch) awaits(folder string) bool {
	for path := range w.named {
		if filepath.Dir(path) == folder {
			return true
		}
	}
	return false
}

// watch watches a path and what is below it. While it is not there, it watches for what leads
// to it: a build removes its output and makes it again.
func (w *fileWatch) watch(path string) error {
	if info, err := os.Lstat(path); err == nil && info.Mode()&fs.ModeSymlink != 0 {
		// It may be made to point somewhere else.
		if err := w.watchName(path); err != nil {
			return err
		}
	}
	for {
		// WalkDir does not enter a root that is a link.
		behind, err := filepath.EvalSymlinks(path)
		if err == nil {
			err = w.watchTree(behind)
		}
		if !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		if !w.watchAncestor(path) {
			return err
		}
		if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		// It came before its ancestor was watched.
	}
}

// watchAncestor watches the nearest folder above a path that is not there for what leads to
// the path. It returns false if there is none.
func (w *fileWatch) watchAncestor(path string) bool {
	for at := path; at != filepath.Dir(at); at = filepath.Dir(at) {
		if w.watchName(at) == nil {
			return true
		}
	}
	return false
}

// watchName watches for a path itself to come and go. Its folder is watched by one name only,
// the one behind all links, because events bear the name that was watched first.
func (w *fileWatch) watchName(path string) error {
	folder, err := filepath.EvalSymlinks(filepath.Dir(path))
	if err == nil {
		err = w.Add(folder)
	}
	if err == nil {
		w.named[filepath.Join(folder, filepath.Base(path))] = true
	}
	return err
}

// watchTree watches a folder and those in it, or the folder of a file.
func (w *fileWatch) watchTree(root string) error {
	w.named[root] = true
	info, err := os.Stat(root)
	if err != nil {
		return err
	}
	if !info.IsDir() {
		// An editor may put another file in its place.
		return w.watchFolder(filepath.Dir(root))
	}
	return filepath.WalkDir(root, func(at string, entry fs.DirEntry, err error) error {
		switch {
		case at == root && err != nil:
			return err
		case err != nil:
			return nil //nolint:nilerr // It is gone again.
		case !entry.IsDir():
			return nil
		case at != root && (ignored(entry.Name()) || file.IsDataFolder(at)):
			return fs.SkipDir
		}
		if err := w.watchFolder(at); at == root || !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		return nil // It is gone again.
	})
}

func (w *fileWatch) watchFolder(at string) error {
	if err := w.Add(at); err != nil {
		return fmt.Errorf("%s: %w", at, err)
	}
	w.folders[at] = true
	return nil
}

// cannotWatch adds the remedy on a system. For limits of Linux the errors alone speak of disks and open
// files. On others a watch has each of its files open.
func cannotWatch(system string, err error) error {
	switch {
	case errors.Is(err, syscall.ENOSPC):
		err = fmt.Errorf("%w: raise fs.inotify.max_user_watches with sysctl, or name fewer folders with -f", err)
	case errors.Is(err, syscall.EMFILE) && system != "linux":
		err = fmt.Errorf("%w: raise the limit of open files with ulimit -n, or name fewer folders with -f", err)
	case errors.Is(err, syscall.EMFILE):
		err = fmt.Errorf("%w: raise fs.inotify.max_user_instances with sysctl", err)
	case errors.Is(err, fs.ErrPermission):
		return inputError(fmt.Errorf("files cannot be watched: %w; see to its rights", err))
	}
	return fmt.Errorf("files cannot be watched: %w", err)
}

// isRelevant reports whether an event may change code or a manifest.
func (w *fileWatch) isRelevant(event fsnotify.Event) bool {
	at := filepath.Clean(event.Name)
	return event.Op != fsnotify.Chmod && (w.named[at] || w.folders[filepath.Dir(at)] && !ignored(filepath.Base(at)))
}

// ignored are the names of what is no code, and of the file by which vim tries whether it can
// write into a folder.
func ignored(name string) bool { return v1alpha1.IsLeftOut(name) || name == "4913" }

// prefixed puts a prefix before each line. It holds back an unfinished line.
type prefixed struct {
	to      io.Writer
	prefix  string
	partial []byte
}

func (p *prefixed) Write(text []byte) (int, error) {
	p.partial = append(p.partial, text...)
	for {
		line, rest, ended := bytes.Cut(p.partial, []byte("\n"))
		if !ended {
			return len(text), nil
		}
		if _, err := fmt.Fprintf(p.to, "%s%s\n", p.prefix, line); err != nil {
			return 0, err
		}
		p.partial = rest
	}
}
