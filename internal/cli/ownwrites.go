package cli

import (
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/windlass-dev/windlass/internal/runtimes"
)

const (
	// maxOwnWrites is how many deployments may follow each other for the same file. A function that
	// writes into its folder when it starts would be deployed for ever.
	maxOwnWrites = 5
	// ownWriteTime is how long after a deployment such a write is expected. It is longer than most
	// functions take to start.
	ownWriteTime = 5 * time.Second
)

// ownWrites decides which changes deploy nothing, because functions made them.
type ownWrites struct {
	// files have changed before each of the last times deployments, and the last of these
	// ended at ended.
	files []string
	times int
	ended time.Time
	// found are files that functions write. Their changes no longer count.
	found map[string]bool
}

// consider says whether changed files are a reason to deploy, and which of them are none from now
// on. Those of authored are always one: an editor may save them every second. No files at all
// mean that nobody knows what changed.
func (o *ownWrites) consider(now time.Time, changed, authored []string) (deploy bool, found []string) {
	if len(changed) == 0 {
		o.files, o.times = nil, 0
		return true, nil
	}
	changed = slices.DeleteFunc(slices.Clone(changed), func(path string) bool { return o.found[path] })
	if len(changed) == 0 {
		return false, nil
	}
	again := slices.DeleteFunc(slices.Clone(changed), func(path string) bool {
		return !slices.Contains(o.files, path) || slices.Contains(authored, path)
	})
	if len(again) == 0 || now.Sub(o.ended) > ownWriteTime {
		o.files, o.times = changed, 0
		return true, nil
	}
	o.files = again
	if o.times < maxOwnWrites {
		return true, nil
	}
	if o.found == nil {
		o.found = make(map[string]bool)
	}
	for _, path := range again {
		o.found[path] = true
	}
	o.times = 0
	return len(changed) > len(again), again
}

// deployed says that a deployment has ended.
func (o *ownWrites) deployed(now time.Time) {
	o.times++
	o.ended = now
}

// authoredFiles are files that only people write: manifests, and the files in which their functions
// begin, which is that of the handler or the first one that the command names.
func authoredFiles(manifests []manifest) []string {
	var paths []string
	for _, m := range manifests {
		if path, err := filepath.Abs(m.source); err == nil {
			paths = append(paths, behindLinks(path))
		}
		template := &m.function.Spec.Template
		if template.Code == nil || template.Code.Path == "" {
			continue
		}
		code := behindLinks(template.Code.Path)
		paths = append(paths, code)
		names, known := runtimes.Candidates(template.RuntimeRef.Name, template.Handler)
		if !known {
			names = slices.Concat(template.Command, template.Args)
		}
		for _, name := range names {
			path := filepath.Join(code, name)
			if info, err := os.Stat(path); err == nil && info.Mode().IsRegular() {
				paths = append(paths, path)
				break
			}
		}
	}
	return paths
}

// behindLinks is the path by which a watch names a file.
func behindLinks(path string) string {
	if target, err := filepath.EvalSymlinks(path); err == nil {
		return target
	}
	return path
}
