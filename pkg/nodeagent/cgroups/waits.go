package cgroups

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// Waits is what says for how long processes of a group could have run and had no core.
type Waits string

// Sources of waits.
const (
	// NoWaits: nothing says it.
	NoWaits Waits = ""
	// Pressure: the time in which at least one thread of the group waited.
	Pressure Waits = "cpu.pressure"
	// WaitSum: the sum of what the group waited on each processor. Version 1 has it while the kernel
	// keeps statistics of its scheduler (sched_schedstats).
	WaitSum Waits = "wait_sum of cpu.stat"
	// RunDelay: the sum of what the group's threads waited. Only who sees the processes can read it.
	RunDelay Waits = "the run delay of threads"
)

const statFile = "cpu.stat"

// findWaits says what the kernel counts for groups like this one.
func (t *Tree) findWaits(cpu string) Waits {
	if t.version == v2 {
		if _, err := os.ReadFile(filepath.Join(cpu, string(Pressure))); err == nil {
			return Pressure // with psi=0 there is no such file, or it cannot be read
		}
		return NoWaits
	}
	if text, err := os.ReadFile(filepath.Join(cpu, statFile)); err == nil && hasField(text, "wait_sum") {
		return WaitSum
	}
	if _, err := os.Stat(filepath.Join(t.root, "proc/self/schedstat")); err == nil && t.creates {
		return RunDelay
	}
	return NoWaits
}

// Waited is for how long processes of the group have waited for a core so far. It may be smaller
// than before, when threads have ended or while a limit stops several. It fails with errors.ErrUnsupported if nothing says it.
func (g *Group) Waited() (time.Duration, error) {
	switch g.waits {
	case Pressure:
		return g.pressure()
	case WaitSum:
		text, err := g.waitFiles.totalOf(filepath.Join(g.dir, statFile))
		if err != nil {
			return 0, err
		}
		return fieldOf(text, "wait_sum", time.Nanosecond)
	case RunDelay:
		return runDelay(g.root, g.dir)
	}
	return 0, fmt.Errorf("cgroups: nothing says how long groups wait: %w", errors.ErrUnsupported)
}

// pressure is the time in which a thread of the group waited, without that in which a limit of the
// group's own or of a group in it kept it from running: no other work is to blame for that. Pressure counts
// the time in which some thread waited, and limits that of each processor. So it goes back while a limit stops
// several, and may be negative.
func (g *Group) pressure() (time.Duration, error) {
	text, err := g.waitFiles.totalOf(filepath.Join(g.dir, string(Pressure)))
	if err != nil {
		return 0, err
	}
	waited, err := parsePressure(text)
	if err != nil {
		return 0, err
	}
	throttled, err := g.waitFiles.throttled(g.dir)
	return waited - throttled, err
}

// parsePressure reads the total of the line about some threads:
//
//	some avg10=0.00 avg60=0.00 avg300=0.00 total=59
//	full avg10=0.00 avg60=0.00 avg300=0.00 total=0
func parsePressure(text string) (time.Duration, error) {
	line, _, _ := strings.Cut(text, "\n")
	_, total, found := strings.Cut(line, "total=")
	if !found || !strings.HasPrefix(line, "some ") {
		return 0, fmt.Errorf("cgroups: %q is not the pressure of a cgroup", line)
	}
	n, err := strconv.ParseInt(total, 10, 64)
	return time.Duration(n) * time.Microsecond, err
}

func hasField(text []byte, name string) bool {
	return bytes.HasPrefix(text, []byte(name+" ")) || bytes.Contains(text, []byte("\n"+name+" "))
}

// runDelay is the sum of what the threads of a group have waited. Those that end meanwhile count
// nothing.
func runDelay(root, dir string) (time.Duration, error) {
	processes, err := os.ReadFile(filepath.Join(dir, processesFile))
	var sum time.Duration
	for _, pid := range strings.Fields(string(processes)) {
		threads, _ := filepath.Glob(filepath.Join(root, "proc", pid, "task", "*", "schedstat"))
		for _, thread := range threads {
			// Three numbers: how long it ran, how long it waited, and how often it ran.
			text, _ := os.ReadFile(thread)
			if fields := strings.Fields(string(text)); len(fields) == 3 {
				n, _ := strconv.ParseInt(fields[1], 10, 64)
				sum += time.Duration(n)
			}
		}
	}
	return sum, err
}

// Holding is what may be done to hold groups back, and what says whether others wait.
type Holding struct {
	// Cores says that groups can be kept on some cores, and Freezer that they can be stopped.
	Cores, Freezer bool
	Waits          Waits
}

// Holding says what the machine allows. Whether it does for a certain group, its Hold says.
func (t *Tree) Holding() Holding {
	if !t.Bands() {
		return Holding{}
	}
	return t.holding
}

// findHolding finds which files the kernel has for groups beside this one.
func (t *Tree) findHolding(cpu string) Holding {
	h := Holding{Waits: t.findWaits(cpu)}
	if t.version == v2 {
		h.Cores, h.Freezer = isFile(filepath.Join(cpu, coresFile)), isFile(filepath.Join(cpu, freezeFile))
		return h
	}
	for controller, has := range map[string]*bool{"cpuset": &h.Cores, "freezer": &h.Freezer} {
		base, err := t.baseIn(controller)
		*has = err == nil && base != "" && isFolder(base)
	}
	return h
}

func isFile(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.Mode().IsRegular()
}

// String says what can be done, and by what.
func (h Holding) String() string {
	var parts []string
	if h.Cores {
		parts = append(parts, "cores by cpuset")
	}
	if h.Freezer {
		parts = append(parts, "stopped by the freezer")
	}
	if h.Waits == NoWaits {
		return strings.Join(append(parts, "nothing says how long groups wait for a core"), ", ")
	}
	return strings.Join(append(parts, "waits by "+string(h.Waits)), ", ")
}
