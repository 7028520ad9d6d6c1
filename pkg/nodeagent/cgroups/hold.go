package cgroups

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
)

// The files of a Hold.
const (
	stateFile  = "freezer.state" // version 1
	freezeFile = "cgroup.freeze" // version 2
	coresFile  = "cpuset.cpus"
	nodesFile  = "cpuset.mems"
	// effectiveCoresFile has the cores on which processes of a group may run, version 2.
	effectiveCoresFile = "cpuset.cpus.effective"
)

// Hold keeps a batch group back: it stops its processes, and says on which cores they run. Whatever
// it changes is in the journal until it is as before. One goroutine at a time uses it.
//
// The group of a pod is never stopped: the agent in it would stop, too, and its scheduler would
// give the instance up. Only the function's container in it is stopped.
type Hold struct {
	journal *Journal
	stop    *held // nil if the group cannot be stopped
	cores   []*held
	reason  string
	// findStop finds what stops the function of a pod; nil for other groups. stop is then open only while
	// the function is stopped.
	findStop func() (stop *held, reason string, err error)
	// findCores brings cores up to date with the containers of a pod; nil for other groups, and with version 2.
	findCores func() error
	made      []string // folders of version 1 that OpenHold made
}

// held is a file that holds something back.
type held struct {
	path   string
	file   file
	usual  string // its content when nothing is held back
	active bool
}

// OpenHold opens a group for being held back. A group that Create made and somebody has left stopped
// goes on. In the group of a pod, agent is the inode number of the group in which its agent says that
// it is; with 0 its function is never stopped.
func (t *Tree) OpenHold(f Folder, agent uint64, journal *Journal) (*Hold, error) {
	if t.version == nil {
		return nil, fmt.Errorf("cgroups: %s", t)
	}
	if !mayBeLow(f.CPU) {
		return nil, fmt.Errorf("cgroups: %s is neither the cgroup of a pod nor one of Windlass", f.CPU)
	}
	h := &Hold{journal: journal}
	var err error
	if createdName.MatchString(filepath.Base(f.CPU)) {
		err = errors.Join(t.openStop(h, f), t.openCores(h, f))
	} else {
		h.findStop = t.podStop(f, agent)
		err = t.openPodCores(h, f)
	}
	if err != nil {
		return nil, errors.Join(err, h.Close())
	}
	return h, nil
}

func (t *Tree) openStop(h *Hold, f Folder) error {
	dir, name, usual := f.CPU, freezeFile, "0"
	if t.version == v1 {
		name, usual = stateFile, "THAWED"
		var err error
		if dir, err = t.sameFor(h, f, "freezer"); dir == "" || err != nil {
			h.reason = "the freezer of cgroup v1 is not there"
			return err
		}
	}
	var err error
	if h.stop, err = t.openHeld(filepath.Join(dir, name), usual); h.stop == nil || err != nil {
		h.reason = "the kernel has no " + name
		return err
	}
	return put(h.stop.file, usual)
}

// openCores opens the file with the cores of a group that Create made, if there is one.
func (t *Tree) openCores(h *Hold, f Folder) error {
	dir := f.CPU
	if t.version == v1 {
		var err error
		if dir, err = t.sameFor(h, f, "cpuset"); dir == "" || err != nil {
			return err
		}
	}
	return t.addCores(h, dir)
}

func (t *Tree) openHeld(path, usual string) (*held, error) {
	f, err := t.kernel.open(path, os.O_RDWR)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return &held{path: path, file: f, usual: usual}, nil
}

// sameIn is the folder of a group in another hierarchy of version 1; "" if there is none.
func (t *Tree) sameIn(controller string, f Folder) (string, error) {
	base, err := t.baseIn(controller)
	if base == "" || err != nil {
		return "", err
	}
	inside, err := filepath.Rel(t.base.CPU, f.CPU)
	if err != nil || strings.HasPrefix(inside, "..") {
		return "", err
	}
	return filepath.Join(base, inside), nil
}

// baseIn is the folder of the base in another hierarchy of version 1; "" if that is not mounted.
func (t *Tree) baseIn(controller string) (string, error) {
	i := slices.IndexFunc(t.mounts, func(m mount) bool { return !m.unified && hasWord(m.options, controller) })
	if i < 0 {
		return "", nil
	}
	base := t.group
	if base == "" {
		var err error
		if base, err = t.ownGroupIn(controller); err != nil {
			return "", err
		}
	}
	return t.mounts[i].folder(t.root, base), nil
}

// sameFor makes the group's folder in another hierarchy of version 1, if it is not there, and moves
// the group's processes into it. It returns "" if the hierarchy is not mounted.
func (t *Tree) sameFor(h *Hold, f Folder, controller string) (string, error) {
	dir, err := t.sameIn(controller, f)
	if dir == "" || err != nil {
		return "", err
	}
	switch err := t.kernel.mkdir(dir); {
	case err == nil:
		h.made = append(h.made, dir)
	case !errors.Is(err, fs.ErrExist):
		return "", err
	}
	if controller == "cpuset" {
		// A new group has neither cores nor memory, and takes no process then.
		for _, name := range []string{coresFile, nodesFile} {
			above, err := os.ReadFile(filepath.Join(filepath.Dir(dir), name))
			if err == nil {
				err = os.WriteFile(filepath.Join(dir, name), above, 0)
			}
			if err != nil {
				return "", err
			}
		}
	}
	processes, err := os.ReadFile(filepath.Join(f.CPU, processesFile))
	if err != nil {
		return "", err
	}
	for _, pid := range strings.Fields(string(processes)) {
		err := os.WriteFile(filepath.Join(dir, processesFile), []byte(pid), 0)
		if _, gone := os.Stat(filepath.Join(t.root, "proc", pid)); err != nil && gone == nil {
			return "", err
		}
	}
	return dir, nil
}

// SetFrozen stops the group's processes, or those of the function in a pod, or lets them go on. It fails
// with errors.ErrUnsupported if they cannot be stopped now.
func (h *Hold) SetFrozen(frozen bool) error {
	if frozen && h.stop == nil && h.findStop != nil {
		stop, reason, err := h.findStop()
		if err != nil {
			return err
		}
		h.stop, h.reason = stop, reason
	}
	switch {
	case h.stop == nil && !frozen:
		return nil
	case h.stop == nil:
		return fmt.Errorf("cgroups: the group cannot be frozen: %s: %w", h.reason, errors.ErrUnsupported)
	case !frozen:
		return h.thaw()
	}
	value := "1"
	if filepath.Base(h.stop.path) == stateFile {
		value = "FROZEN"
	}
	err := h.stop.change(h.journal, value)
	if err != nil && !h.stop.active {
		err = errors.Join(err, h.thaw())
	}
	return err
}

// thaw lets the group go on. What stopped the function of a pod is not kept open.
func (h *Hold) thaw() error {
	err := h.stop.restore(h.journal)
	if err != nil || h.findStop == nil {
		return err
	}
	err, h.stop = h.stop.file.Close(), nil
	return err
}

// SetCores lets the group run on a list of cores only, such as "2-3", as far as it may run there at all; "" is as
// before. It fails with errors.ErrUnsupported without cpusets. Containers that a pod gets later run on its list once it
// is set again, which writes nothing where that is so already.
func (h *Hold) SetCores(list string) error {
	var errs []error
	switch {
	case list == "":
	case h.findCores != nil:
		errs = append(errs, h.findCores())
	case len(h.cores) == 0:
		return fmt.Errorf("cgroups: the group has no %s: %w", coresFile, errors.ErrUnsupported)
	}
	for _, cores := range h.cores {
		if list == "" {
			errs = append(errs, cores.restore(h.journal))
		} else {
			errs = append(errs, cores.narrow(h.journal, list))
		}
	}
	return errors.Join(errs...)
}

// narrow lets a group run on the part of some cores on which it may run anyway, or if that is none, as
// before.
func (f *held) narrow(journal *Journal, list string) error {
	if !f.active {
		// It is read each time: kubelet may have changed it.
		usual, err := firstLine(f.file)
		switch {
		case errors.Is(err, errGone):
			return nil // a container that has ended
		case err != nil:
			return err
		}
		f.usual = usual
	}
	part, err := within(list, f.usual)
	switch {
	case err != nil:
		return err
	case part == "":
		return f.restore(journal)
	}
	err = f.change(journal, part)
	if errors.Is(err, errGone) {
		return nil
	}
	return err
}

// change writes a value. The journal knows it before.
func (f *held) change(journal *Journal, value string) error {
	if !f.active {
		if err := journal.noteHeld(f.path, f.usual); err != nil {
			return err
		}
		f.active = true
	} else if is, err := firstLine(f.file); err == nil && is == value {
		return nil
	}
	if err := put(f.file, value); err != nil {
		return errors.Join(err, f.restore(journal))
	}
	return nil
}

// restore writes what was there before. After an error it is still held for the journal.
func (f *held) restore(journal *Journal) error {
	if !f.active {
		return nil
	}
	if err := putBack(f.file, f.path, f.usual); err != nil && !errors.Is(err, errGone) {
		return err
	}
	f.active = false
	return journal.noteFree(f.path)
}

// putBack writes what a file had before. Most kernels with version 2 take no empty list of cores while processes are
// in the group. All cores of the group above mean the same.
func putBack(f file, path, usual string) error {
	err := put(f, usual)
	if usual != "" || !errors.Is(err, syscall.ENOSPC) {
		return err
	}
	above, err := os.ReadFile(filepath.Join(filepath.Dir(filepath.Dir(path)), effectiveCoresFile))
	if err != nil {
		return err
	}
	return put(f, strings.TrimSpace(string(above)))
}

// Close lets the group go on as before. A group that is gone is no error.
func (h *Hold) Close() error {
	var err error
	all := h.cores
	if h.stop != nil {
		all = append(all, h.stop)
	}
	for _, f := range all {
		err = errors.Join(err, f.restore(h.journal), f.file.Close())
	}
	for _, dir := range h.made {
		leaveFolder(dir)
	}
	return err
}

// leaveFolder moves the processes of a folder to the one above, and removes it. Where that fails, Detect
// removes it once the processes are gone.
func leaveFolder(dir string) {
	processes, _ := os.ReadFile(filepath.Join(dir, processesFile))
	for _, pid := range strings.Fields(string(processes)) {
		_ = os.WriteFile(filepath.Join(filepath.Dir(dir), processesFile), []byte(pid), 0)
	}
	_ = os.Remove(dir)
}

// mayBeHeld reports whether a file is one of a Hold's.
func mayBeHeld(path string) bool {
	dir, name := filepath.Split(path)
	dir = filepath.Clean(dir)
	mine := createdName.MatchString(filepath.Base(dir)) || isContainer(dir)
	switch name {
	case stateFile, freezeFile:
		return filepath.IsAbs(path) && mine
	case coresFile:
		return filepath.IsAbs(path) && (mine || mayBeLow(dir))
	}
	return false
}

// heldOf is what a file has when nothing is held back, if it is held.
func (j *Journal) heldOf(path string) (usual string, held bool) {
	j.mu.Lock()
	defer j.mu.Unlock()
	usual, held = j.held[path]
	return usual, held
}

// noteHeld writes down what a file has when nothing is held back.
func (j *Journal) noteHeld(path, usual string) error {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.held[path] = usual
	err := j.append(heldLine(path, usual))
	if err != nil {
		delete(j.held, path)
	}
	return err
}

func (j *Journal) noteFree(path string) error {
	j.mu.Lock()
	defer j.mu.Unlock()
	delete(j.held, path)
	return j.append("free " + strconv.Quote(path) + "\n")
}

func heldLine(path, usual string) string {
	return "held " + strconv.Quote(usual) + " " + strconv.Quote(path) + "\n"
}

// readHeld adds what a line of a journal says about files that hold something back.
func readHeld(into map[string]string, line string) {
	kind, rest, _ := strings.Cut(line, " ")
	first, err := strconv.QuotedPrefix(rest)
	if err != nil {
		return
	}
	usual, _ := strconv.Unquote(first)
	switch kind {
	case "free":
		delete(into, usual)
	case "held":
		path, err := strconv.Unquote(strings.TrimPrefix(rest[len(first):], " "))
		if err == nil && mayBeHeld(path) {
			into[path] = usual
		}
	}
}

// freeAll writes what was in files before, and returns those in which it could not.
func freeAll(all map[string]string) error {
	var failed error
	for path, usual := range all {
		if err := restoreFile(path, usual); err != nil {
			failed = errors.Join(failed, fmt.Errorf("cgroups: cannot restore %s: %w", path, err))
			continue
		}
		delete(all, path)
	}
	return failed
}
