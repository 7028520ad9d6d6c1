package cgroups

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"time"
)

// Group is an open control group. It has at most three open files, and some more once its waits are
// read. One goroutine at a time uses it.
type Group struct {
	dir     string
	root    string // Options.Root
	version *version
	lever   lever
	waits   Waits
	journal *Journal
	usage   file
	idle    file // nil without cpu.idle
	weight  file // nil without bands
	low     bool
	before  string // the weight that it had before it was low
	buffer  [128]byte

	waitFiles waitFiles
}

// Open opens a group. A group that somebody has left in the low band, and that no journal knows,
// becomes normal; its weight is then that of a new group. A journal knows it if the group is open
// already: the one that was opened first is to be closed.
func (t *Tree) Open(f Folder, journal *Journal) (*Group, error) {
	if t.version == nil {
		return nil, fmt.Errorf("cgroups: %s", t)
	}
	if !mayBeLow(f.CPU) {
		return nil, fmt.Errorf("cgroups: %s is neither the cgroup of a pod nor one of Windlass", f.CPU)
	}
	g := &Group{dir: f.CPU, root: t.root, version: t.version, lever: t.lever, waits: t.holding.Waits, journal: journal, waitFiles: waitFiles{kernel: t.kernel}}
	open := func(into *file, name string, flag int) error {
		opened, err := t.kernel.open(name, flag)
		if err == nil {
			*into = opened
		}
		return err
	}
	err := open(&g.usage, filepath.Join(f.Usage, t.version.usage), os.O_RDONLY)
	if err == nil && t.lever != leverNone {
		err = open(&g.weight, filepath.Join(f.CPU, t.version.weight), os.O_RDWR)
	}
	if err == nil && t.lever == leverIdle {
		err = open(&g.idle, filepath.Join(f.CPU, idleFile), os.O_RDWR)
	}
	if err == nil {
		err = g.adopt()
	}
	if err != nil {
		return nil, errors.Join(err, g.closeFiles())
	}
	return g, nil
}

// adopt lifts a group that was left low.
func (g *Group) adopt() error {
	if g.idle == nil {
		return nil
	}
	idle, err := firstLine(g.idle)
	if err != nil || idle != "1" {
		return err
	}
	weight := g.journal.weightOf(g.dir)
	if weight == "" {
		// Who lowered it may lift it at this moment: it is normal then before the journal forgets the weight.
		if idle, err = firstLine(g.idle); err != nil || idle != "1" {
			return err
		}
		weight = cmp.Or(g.journal.weightOf(g.dir), g.version.usual)
	}
	return errors.Join(put(g.idle, "0"), put(g.weight, weight))
}

// Usage is the processor time that the group has used so far.
func (g *Group) Usage() (time.Duration, error) {
	n, err := g.usage.ReadAt(g.buffer[:], 0)
	if n == 0 {
		return 0, err
	}
	return g.version.parseUsage(g.buffer[:n])
}

// parseUsage reads nanoseconds, or the line of microseconds that cpu.stat begins with.
func (v *version) parseUsage(text []byte) (time.Duration, error) {
	line, _, _ := bytes.Cut(text, []byte("\n"))
	unit := time.Nanosecond
	if v == v2 {
		number, found := bytes.CutPrefix(line, []byte("usage_usec "))
		if !found {
			return 0, fmt.Errorf("cgroups: %q is not the usage of a cgroup", line)
		}
		line, unit = number, time.Microsecond
	}
	n, err := strconv.ParseInt(string(line), 10, 64)
	return time.Duration(n) * unit, err
}

// SetLow moves the group into the low band or back. After an error of the way back it is still
// low for the journal, and SetLow may be called again. So it may while the group is low, to lower it again if
// somebody else has lifted it.
func (g *Group) SetLow(low bool) error {
	switch {
	case !low && !g.low:
		return nil
	case g.lever == leverNone:
		return fmt.Errorf("cgroups: the group has no bands: %w", errors.ErrUnsupported)
	case low && g.low:
		return g.keepLow()
	case low:
		return g.lower()
	}
	return g.lift()
}

// keepLow lowers the group again if it is not low any more. Its weight may be another one then: systemd lifts a group
// as it applies the weight of its unit, after a daemon-reload or a change. A group that is gone is no error.
func (g *Group) keepLow() error {
	file, low := g.lowValue()
	switch is, err := firstLine(file); {
	case errors.Is(err, errGone):
		return nil
	case err != nil || is == low:
		return err
	}
	return g.lower()
}

// lowValue is what makes a group low.
func (g *Group) lowValue() (file, string) {
	if g.lever == leverIdle {
		return g.idle, "1"
	}
	return g.weight, g.version.least
}

func (g *Group) lower() error {
	// It is read each time: kubelet and systemd may have changed it.
	weight, err := firstLine(g.weight)
	if err != nil {
		return err
	}
	if err := g.journal.noteLow(g.dir, weight); err != nil {
		g.low = false
		return err
	}
	g.low, g.before = true, weight
	if err := put(g.lowValue()); err != nil {
		return errors.Join(err, g.lift())
	}
	return nil
}

func (g *Group) lift() error {
	if g.idle != nil {
		if err := put(g.idle, "0"); err != nil {
			return err
		}
	}
	if err := put(g.weight, g.before); err != nil {
		return err
	}
	g.low = false
	return g.journal.noteNormal(g.dir)
}

// Close sets the group to normal and closes its files. A group that is gone is no error.
func (g *Group) Close() error {
	err := g.SetLow(false)
	if errors.Is(err, errGone) {
		err = g.journal.noteNormal(g.dir)
	}
	return errors.Join(err, g.closeFiles())
}

func (g *Group) closeFiles() error {
	err := g.waitFiles.close()
	for _, f := range []file{g.usage, g.idle, g.weight} {
		if f != nil {
			err = errors.Join(err, f.Close())
		}
	}
	return err
}
