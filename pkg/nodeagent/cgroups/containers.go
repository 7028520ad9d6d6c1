package cgroups

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"
)

// isContainer reports whether a folder is the group of a container: a child of a pod's, and no pod's
// itself.
func isContainer(dir string) bool {
	name, above := filepath.Base(dir), filepath.Base(filepath.Dir(dir))
	isPod := func(name string) bool { return podName.MatchString(name) || podSlice.MatchString(name) }
	return isPod(above) && !isPod(name) && name != "." && name != ".."
}

// container is what is known of a container of a pod.
type container struct {
	name  string
	inode uint64
	used  time.Duration
}

// computing is how much processor time a container has used that computes. The process that
// holds a pod together uses some milliseconds in all its life.
const computing = 100 * time.Millisecond

// functionAmong finds the function's container among those of a pod: the only one that computes
// beside that of the agent, whose group has this inode number. If there is not exactly one, the
// reason says why. An agent that lies harms its own pod alone.
func functionAmong(containers []container, agent uint64) (name, reason string) {
	found, others := false, 0
	for _, c := range containers {
		switch {
		case c.inode == agent:
			found = true
		case c.used >= computing:
			name = c.name
			others++
		}
	}
	switch {
	case agent == 0:
		return "", "its agent does not say in which container it is"
	case !found:
		return "", "its agent is in no container of the pod that is seen here"
	case others == 0:
		return "", "no container but the agent's has computed yet"
	case others > 1:
		return "", "several containers compute beside the agent's"
	}
	return name, ""
}

func inodeOf(dir string) (uint64, error) {
	info, err := os.Stat(dir)
	if err != nil {
		return 0, err
	}
	stat, is := info.Sys().(*syscall.Stat_t)
	if !is {
		return 0, errors.ErrUnsupported
	}
	return stat.Ino, nil
}

// containersOf reads what is known of the containers of a pod. Their processor time may be counted in
// another hierarchy than the one in which they are stopped.
func (t *Tree) containersOf(dir, usage string) ([]container, error) {
	entries, err := os.ReadDir(dir)
	var all []container
	for _, entry := range entries {
		if !entry.IsDir() {
			continue
		}
		c := container{name: entry.Name()}
		number, gone := inodeOf(filepath.Join(dir, c.name))
		text, uncounted := os.ReadFile(filepath.Join(usage, c.name, t.version.usage))
		if gone != nil || uncounted != nil {
			continue // it may go at any time
		}
		if c.used, err = t.version.parseUsage([]byte(strings.TrimSpace(string(text)))); err != nil {
			return nil, err
		}
		c.inode = number
		all = append(all, c)
	}
	return all, err
}

// podStop finds the file by which the function's container of a pod stops. It looks each time that
// one is to stop, because containers come and go.
func (t *Tree) podStop(pod Folder, agent uint64) func() (*held, string, error) {
	return func() (*held, string, error) {
		dir, name, usual, err := t.freezerOf(pod)
		if dir == "" || err != nil {
			return nil, "the freezer of cgroup v1 is not there", err
		}
		containers, err := t.containersOf(dir, pod.Usage)
		if err != nil {
			return nil, "", err
		}
		function, reason := functionAmong(containers, agent)
		if reason != "" {
			return nil, reason, nil
		}
		stop, err := t.openHeld(filepath.Join(dir, function, name), usual)
		if stop == nil || err != nil {
			return nil, "the kernel has no " + name, err
		}
		state, err := firstLine(stop.file)
		if err != nil || state != usual {
			return nil, "somebody else has stopped it", errors.Join(err, stop.file.Close())
		}
		return stop, "", nil
	}
}

// freezerOf is the folder of a group in the hierarchy that stops groups, "" if that is not mounted, with the file
// that does it and its usual content.
func (t *Tree) freezerOf(f Folder) (dir, name, usual string, err error) {
	if t.version == v2 {
		return f.CPU, freezeFile, "0", nil
	}
	dir, err = t.sameIn("freezer", f)
	return dir, stateFile, "THAWED", err
}

// openPodCores opens the files with the cores of a pod. In version 1 a group cannot have fewer cores than one
// in it, so each container has to be kept.
func (t *Tree) openPodCores(h *Hold, pod Folder) error {
	if t.version == v2 {
		return t.addCores(h, pod.CPU)
	}
	dir, err := t.sameIn("cpuset", pod)
	if dir == "" || err != nil {
		return err
	}
	h.findCores = func() error { return t.findContainers(h, dir) }
	return h.findCores()
}

// findContainers opens the files with the cores of containers that a pod has now, and closes those of containers that
// are gone. A container without cores is about to get those of the pod.
func (t *Tree) findContainers(h *Hold, dir string) error {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	known := h.cores
	h.cores = nil
	for _, entry := range entries {
		path := filepath.Join(dir, entry.Name(), coresFile)
		i := slices.IndexFunc(known, func(f *held) bool { return f.path == path })
		switch {
		case i >= 0:
			h.cores, known = append(h.cores, known[i]), slices.Delete(known, i, i+1)
		case entry.IsDir() && !isBlank(path):
			err = errors.Join(err, t.addCores(h, filepath.Dir(path)))
		}
	}
	for _, gone := range known {
		err = errors.Join(err, gone.restore(h.journal), gone.file.Close())
	}
	if err != nil {
		return fmt.Errorf("cgroups: the cores of a pod: %w", err)
	}
	return nil
}

func isBlank(path string) bool {
	text, _ := os.ReadFile(path)
	return strings.TrimSpace(string(text)) == ""
}

func (t *Tree) addCores(h *Hold, dir string) error {
	cores, err := t.openHeld(filepath.Join(dir, coresFile), "")
	if cores != nil {
		// What could not be given back before is not its usual list.
		cores.usual, cores.active = h.journal.heldOf(cores.path)
		h.cores = append(h.cores, cores)
	}
	return err
}
