package cgroups

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// Options say where to look for control groups.
type Options struct {
	// Root is the folder that has /proc and /sys; "" is "/".
	Root string
	// Below is the folder below which hierarchies must be mounted, such as a volume of a container
	// that has those of its node; "" is any.
	Below string
	// Base is the group, as a path in its hierarchy, below which groups are created or found.
	// "" is the group of this process, or with version 2 the one above it, because a group there
	// has either processes or groups.
	Base string
	// Create says that groups are created below Base, and not found there.
	Create bool

	kernel kernel
}

// lever is how a group gets into the low band.
type lever string

const (
	leverNone   lever = ""
	leverIdle   lever = "cpu.idle"
	leverWeight lever = "weights"
)

// Tree is the part of a machine's control groups that a node agent may use.
type Tree struct {
	version *version // nil if there are none
	lever   lever
	problem string // why there are no bands
	// counts says that groups count processor time.
	counts  bool
	creates bool // Options.Create
	holding Holding
	base    Folder
	group   string // Options.Base
	mounts  mounts
	root    string
	kernel  kernel
}

// Folder is a control group: its folder in the hierarchy of the cpu controller, and in the one
// that counts processor time.
type Folder struct{ CPU, Usage string }

// each calls do for the folders, which are one with version 2 and may be one with version 1.
func (f Folder) each(do func(dir string) error) error {
	err := do(f.CPU)
	if f.Usage != f.CPU {
		err = errors.Join(err, do(f.Usage))
	}
	return err
}

func (f Folder) below(name string) Folder {
	return Folder{CPU: filepath.Join(f.CPU, name), Usage: filepath.Join(f.Usage, name)}
}

// version is how a version of control groups calls its files.
type version struct {
	number        int
	weight, usage string
	// least is the least weight that there is, and usual that of a new group.
	least, usual string
}

var (
	v1 = &version{number: 1, weight: "cpu.shares", usage: "cpuacct.usage", least: "2", usual: "1024"}
	v2 = &version{number: 2, weight: "cpu.weight", usage: "cpu.stat", least: "1", usual: "100"}
)

const (
	idleFile      = "cpu.idle"
	processesFile = "cgroup.procs"
)

// Detect finds out what may be done with the machine's control groups. It always returns a tree,
// which says so by String.
func Detect(o Options) *Tree {
	t := &Tree{root: o.Root, kernel: o.kernel}
	if t.root == "" {
		t.root = "/"
	}
	if t.kernel == nil {
		t.kernel = realKernel{}
	}
	if err := t.detect(o); err != nil {
		t.lever, t.problem = leverNone, err.Error()
	}
	return t
}

func (t *Tree) detect(o Options) error {
	text, err := os.ReadFile(filepath.Join(t.root, "proc/self/mountinfo"))
	if err != nil {
		return err
	}
	t.mounts, t.group, t.creates = mountsOf(string(text)).below(o.Below), o.Base, o.Create
	found, err := t.mounts.hierarchies(t.root)
	if err != nil && o.Below != "" {
		return fmt.Errorf("%s: %w", o.Below, err)
	}
	if err != nil {
		return err
	}
	base := o.Base
	if base == "" {
		if base, err = t.ownGroup(found.version); err != nil {
			return err
		}
	}
	t.version = found.version
	t.base = Folder{CPU: found.cpu.folder(t.root, base), Usage: found.usage.folder(t.root, base)}
	if o.Create {
		return t.tryToCreate()
	}
	return t.tryToOpen()
}

// ownGroup is the group of this process in the hierarchy of the cpu controller.
func (t *Tree) ownGroup(v *version) (string, error) {
	if v == v1 {
		return t.ownGroupIn("cpu")
	}
	path, err := t.ownGroupIn("")
	return filepath.Dir(path), err
}

// ownGroupIn is the group of this process in the hierarchy of a controller of version 1; "" is that
// of version 2.
func (t *Tree) ownGroupIn(controller string) (string, error) {
	text, err := os.ReadFile(filepath.Join(t.root, "proc/self/cgroup"))
	if err != nil {
		return "", err
	}
	for line := range strings.Lines(string(text)) {
		_, rest, _ := strings.Cut(strings.TrimSuffix(line, "\n"), ":")
		controllers, path, _ := strings.Cut(rest, ":")
		if hasWord(controllers, controller) {
			return path, nil
		}
	}
	return "", errors.New("this process is in no " + strings.TrimPrefix(controller+" control group", " "))
}

// tryToCreate makes a group and removes it again, since only that says whether it is allowed and
// which files there are.
func (t *Tree) tryToCreate() error {
	t.sweep()
	probe, err := t.Create("probe")
	if err != nil {
		return fmt.Errorf("cannot create cgroups below %s: %w", t.base.CPU, plainly(err))
	}
	defer func() { _ = probe.Remove() }()
	return t.findLever(probe.CPU, probe.Usage)
}

// tryToOpen looks at the group of all pods, without writing to it: roots have no such files.
func (t *Tree) tryToOpen() error {
	for _, name := range append(slices.Clone(podsFolders), "") {
		pods := t.base.below(name)
		if _, err := os.Stat(filepath.Join(pods.CPU, t.version.weight)); err == nil {
			return t.findLever(pods.CPU, pods.Usage)
		}
	}
	return fmt.Errorf("there are no cgroups of pods below %s", t.base.CPU)
}

// findLever says by which files groups like this one get into the low band.
func (t *Tree) findLever(cpu, usage string) error {
	if _, err := os.Stat(filepath.Join(usage, t.version.usage)); err != nil {
		return fmt.Errorf("cgroups in %s count no processor time", filepath.Dir(usage))
	}
	t.counts, t.holding = true, t.findHolding(cpu)
	if _, err := os.Stat(filepath.Join(cpu, t.version.weight)); err != nil {
		return fmt.Errorf("the cpu controller is not enabled in %s", filepath.Dir(cpu))
	}
	for _, l := range []lever{leverIdle, leverWeight} {
		name := filepath.Join(cpu, idleFile)
		if l == leverWeight {
			name = filepath.Join(cpu, t.version.weight)
		}
		f, err := t.kernel.open(name, os.O_RDWR)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return fmt.Errorf("cannot write %s: %w", name, plainly(err))
		}
		t.lever = l
		return f.Close()
	}
	return errors.New("the kernel has neither cpu.idle nor weights")
}

// Bands reports whether groups can be moved between bands.
func (t *Tree) Bands() bool { return t.lever != leverNone }

// Counts reports whether the processor time of groups can be read. If not, none can be opened.
func (t *Tree) Counts() bool { return t.counts }

// String says what can be done, and what cannot and why.
func (t *Tree) String() string {
	switch t.lever {
	case leverIdle:
		return fmt.Sprintf("bands by cpu.idle in cgroup v%d", t.version.number)
	case leverWeight:
		return fmt.Sprintf("bands by weights in cgroup v%d: the kernel has no cpu.idle", t.version.number)
	}
	return "order only: " + t.problem
}

// plainly is an error without the path, which its message says already.
func plainly(err error) error {
	var of *fs.PathError
	if errors.As(err, &of) {
		return of.Err
	}
	return err
}

// created is how the names of created groups begin: with the process that made them.
const created = "windlass-"

// Create makes a group. Its name has letters, digits, dashes and dots.
func (t *Tree) Create(name string) (Folder, error) {
	switch {
	case t.version == nil:
		return Folder{}, errors.New("cgroups: " + t.String())
	case !createdName.MatchString(created + "1-" + name):
		return Folder{}, fmt.Errorf("cgroups: the name %q must consist of letters, digits, dashes and dots", name)
	}
	f := t.base.below(created + strconv.Itoa(os.Getpid()) + "-" + name)
	if err := f.each(t.kernel.mkdir); err != nil {
		_ = f.Remove()
		return Folder{}, err
	}
	return f, nil
}

// AddProcess moves a process into the group. What it starts later is in the group, too.
func (f Folder) AddProcess(pid int) error {
	return f.each(func(dir string) error {
		return os.WriteFile(filepath.Join(dir, processesFile), []byte(strconv.Itoa(pid)), 0)
	})
}

// Remove removes a created group. It fails while there are processes in it.
func (f Folder) Remove() error {
	return f.each(func(dir string) error {
		if err := os.Remove(dir); !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		return nil
	})
}

// sweep removes empty groups of processes that are gone.
func (t *Tree) sweep() {
	bases := []string{t.base.CPU, t.base.Usage}
	if t.version == v1 {
		for _, controller := range []string{"freezer", "cpuset"} {
			if base, err := t.baseIn(controller); base != "" && err == nil {
				bases = append(bases, base)
			}
		}
	}
	for _, base := range bases {
		stale, _ := filepath.Glob(filepath.Join(base, created+"*"))
		for _, group := range stale {
			pid, _, _ := strings.Cut(strings.TrimPrefix(filepath.Base(group), created), "-")
			if _, gone := os.Stat(filepath.Join(t.root, "proc", pid)); errors.Is(gone, fs.ErrNotExist) {
				_ = os.Remove(group) // fails if a process is in it
			}
		}
	}
}

// kernel makes groups and opens their files. Tests have another one, because plain files do not
// behave as those of the kernel.
type kernel interface {
	mkdir(dir string) error
	open(name string, flag int) (file, error)
}

// file is an open file of a group.
type file interface {
	ReadAt(p []byte, offset int64) (int, error)
	WriteAt(p []byte, offset int64) (int, error)
	Close() error
}

type realKernel struct{}

func (realKernel) mkdir(dir string) error { return os.Mkdir(dir, 0o755) }

func (realKernel) open(name string, flag int) (file, error) {
	if flag != os.O_RDONLY {
		return os.OpenFile(name, flag, 0)
	}
	readable, err := OpenReadable(name)
	if err != nil {
		return nil, err // and not a file that is nil
	}
	return readable, nil
}

// firstLine reads the first line of a file. A list of cores may be longer than what is read at a time.
func firstLine(f file) (string, error) {
	var line []byte
	var buffer [1024]byte
	for {
		n, err := f.ReadAt(buffer[:], int64(len(line)))
		if n == 0 && len(line) == 0 {
			return "", err
		}
		part, _, ended := bytes.Cut(buffer[:n], []byte("\n"))
		line = append(line, part...)
		if ended || n < len(buffer) {
			return string(line), nil
		}
	}
}

func put(f file, value string) error {
	_, err := f.WriteAt([]byte(value+"\n"), 0)
	return err
}
