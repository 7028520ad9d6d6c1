package cli

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/fsnotify/fsnotify"
)

// settleTime is how long after a first change others are gathered: an editor writes a file
// several times, and a checkout writes many.
const settleTime = 200 * time.Millisecond

// watchFiles calls changed after files have changed, until ctx ends. What is watched is
// asked anew after each change. Changes while changed runs are not missed.
func watchFiles(ctx context.Context, paths func() []string, changed func()) error {
	watcher, err := fsnotify.NewWatcher()
	if err != nil {
		return fmt.Errorf("files cannot be watched: %w", err)
	}
	defer watcher.Close()
	if err := watchAll(watcher, paths()); err != nil {
		return err
	}
	settled := time.NewTimer(time.Hour)
	settled.Stop()
	defer settled.Stop()
	waiting := false
	begin := func() {
		if !waiting {
			waiting = true
			settled.Reset(settleTime)
		}
	}
	for {
		select {
		case <-ctx.Done():
			return nil
		case event := <-watcher.Events:
			if isRelevant(event) {
				begin()
			}
		case err, open := <-watcher.Errors:
			if !open {
				return err
			}
			// Some changes were missed.
			begin()
		case <-settled.C:
			waiting = false
			changed()
			if err := watchAll(watcher, paths()); err != nil {
				return err
			}
		}
	}
}

// watchAll watches the folders of paths and those in them.
func watchAll(watcher *fsnotify.Watcher, paths []string) error {
	for _, path := range paths {
		info, err := os.Stat(path)
		if err != nil {
			return fmt.Errorf("files cannot be watched: %w", err)
		}
		if !info.IsDir() {
			// An editor may put another file in its place.
			if err := watcher.Add(filepath.Dir(path)); err != nil {
				return fmt.Errorf("files cannot be watched: %w", err)
			}
			continue
		}
		err = filepath.WalkDir(path, func(at string, entry fs.DirEntry, err error) error {
			switch {
			case err != nil:
				return nil //nolint:nilerr // It is gone again.
			case !entry.IsDir():
				return nil
			case at != path && ignored(entry.Name()):
				return fs.SkipDir
			}
			return watcher.Add(at)
		})
		if err != nil {
			return fmt.Errorf("files cannot be watched: %w", err)
		}
	}
	return nil
}

// isRelevant reports whether an event may change code or a manifest.
func isRelevant(event fsnotify.Event) bool {
	return event.Op != fsnotify.Chmod && !ignored(filepath.Base(event.Name))
}

// ignored are the names of what tools write beside code.
func ignored(name string) bool {
	return strings.HasPrefix(name, ".") && name != "." || strings.HasSuffix(name, "~") || strings.HasSuffix(name, ".pyc") ||
		slices.Contains([]string{"__pycache__", "node_modules", "4913"}, name)
}

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
