package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// ticksPerSecond is the unit of process start times, the same on every Linux.
const ticksPerSecond = 100

// started are the times at which a pod's first processes started; zero if they
// are not on this machine.
type started struct{ sandbox, agent, function time.Time }

// findStarted looks for the processes of two containers, given their ids. The
// sandbox is the first child of the shim that is the parent of both.
func findStarted(agent, function string) (s started, err error) {
	all, err := processes()
	if err != nil {
		return s, err
	}
	boot, err := bootTime()
	if err != nil {
		return s, err
	}
	shim := 0
	for _, p := range all {
		switch {
		case p.in(agent):
			s.agent = earlier(s.agent, p.startedAt(boot))
			if p.first {
				shim = p.parent
			}
		case p.in(function):
			s.function = earlier(s.function, p.startedAt(boot))
		}
	}
	for _, p := range all {
		if shim != 0 && p.parent == shim {
			s.sandbox = earlier(s.sandbox, p.startedAt(boot))
		}
	}
	return s, nil
}

func earlier(a, b time.Time) time.Time {
	if a.IsZero() || b.Before(a) {
		return b
	}
	return a
}

// process is what /proc tells of one.
type process struct {
	pid, parent int
	ticks       int64 // from the start of the machine to its own
	cgroups     []byte
	// first says that it is the first one of its PID namespace, as the first
	// process of a container is.
	first bool
}

// in tells whether the process is in a container: the last part of its cgroup is
// the container's id, or has it between a prefix and a suffix.
func (p process) in(container string) bool {
	return container != "" && bytes.Contains(p.cgroups, []byte(container))
}

func (p process) startedAt(boot time.Time) time.Time {
	return boot.Add(time.Duration(p.ticks) * time.Second / ticksPerSecond)
}

func processes() ([]process, error) {
	folders, err := filepath.Glob("/proc/[0-9]*")
	if err != nil {
		return nil, err
	}
	var all []process
	for _, folder := range folders {
		// One that has ended meanwhile is none of ours.
		stat, statErr := os.ReadFile(filepath.Join(folder, "stat"))
		cgroups, cgroupErr := os.ReadFile(filepath.Join(folder, "cgroup"))
		status, statusErr := os.ReadFile(filepath.Join(folder, "status"))
		if statErr != nil || cgroupErr != nil || statusErr != nil {
			continue
		}
		p, err := parseStat(string(stat))
		if err != nil {
			return nil, err
		}
		p.cgroups, p.first = cgroups, isFirst(string(status))
		all = append(all, p)
	}
	return all, nil
}

// parseStat reads a line of /proc/PID/stat. The name in parentheses may have
// spaces and parentheses itself.
func parseStat(line string) (p process, err error) {
	open, end := strings.IndexByte(line, '('), strings.LastIndexByte(line, ')')
	if open < 0 || end < open {
		return p, fmt.Errorf("%q is no line of /proc/PID/stat", line)
	}
	fields := strings.Fields(line[end+1:])
	if len(fields) < 20 {
		return p, fmt.Errorf("%q is no line of /proc/PID/stat", line)
	}
	var errs [3]error
	p.pid, errs[0] = strconv.Atoi(strings.TrimSpace(line[:open]))
	p.parent, errs[1] = strconv.Atoi(fields[1])
	p.ticks, errs[2] = strconv.ParseInt(fields[19], 10, 64)
	for _, err := range errs {
		if err != nil {
			return p, fmt.Errorf("%q is no line of /proc/PID/stat: %w", line, err)
		}
	}
	return p, nil
}

// isFirst reads the last number behind NSpid: in /proc/PID/status, which is the
// process's number in its own namespace.
func isFirst(status string) bool {
	for line := range strings.Lines(status) {
		if numbers, found := strings.CutPrefix(line, "NSpid:"); found {
			fields := strings.Fields(numbers)
			return len(fields) > 1 && fields[len(fields)-1] == "1"
		}
	}
	return false
}

// bootTime is when the machine started, by today's clock.
func bootTime() (time.Time, error) {
	var since unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_BOOTTIME, &since); err != nil {
		return time.Time{}, err
	}
	return time.Now().Add(-time.Duration(since.Nano())), nil
}
