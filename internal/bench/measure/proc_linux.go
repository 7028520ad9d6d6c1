package measure

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// supported says why nothing can be measured here; nil if it can.
func supported() error { return nil }

// childAttr keeps the terminal's Ctrl-C from a program, which the bench stops itself, and asks the
// program to end should the thread that starts it end.
func childAttr() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGTERM}
}

// cpuOf is the CPU time of a process.
func cpuOf(pid int) (time.Duration, error) {
	const allThreads = 2
	var at unix.Timespec
	if err := unix.ClockGettime(int32(^pid<<3|allThreads), &at); err != nil {
		return 0, fmt.Errorf("the CPU time of process %d: %w", pid, err)
	}
	return time.Duration(at.Nano()), nil
}

// switchesOf are the context switches of a process, voluntary or not.
func switchesOf(pid int) (int64, error) {
	tasks, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/[0-9]*/status", pid))
	if err != nil || len(tasks) == 0 {
		return 0, fmt.Errorf("process %d has ended", pid)
	}
	var sum int64
	for _, task := range tasks {
		status, err := os.ReadFile(task)
		if err != nil {
			// That thread has ended meanwhile.
			continue
		}
		for line := range bytes.Lines(status) {
			name, value, _ := bytes.Cut(line, []byte{':'})
			if bytes.HasSuffix(name, []byte("voluntary_ctxt_switches")) {
				n, err := strconv.ParseInt(string(bytes.TrimSpace(value)), 10, 64)
				if err != nil {
					return 0, fmt.Errorf("%s: %w", task, err)
				}
				sum += n
			}
		}
	}
	return sum, nil
}

// childrenOf are the processes that have this parent.
func childrenOf(parent int) ([]int, error) {
	stats, err := filepath.Glob("/proc/[0-9]*/stat")
	if err != nil {
		return nil, err
	}
	var children []int
	for _, path := range stats {
		stat, err := os.ReadFile(path)
		if err != nil {
			continue
		}
		// pid (name) state ppid, and names may have parentheses.
		fields := bytes.Fields(stat[bytes.LastIndexByte(stat, ')')+1:])
		if len(fields) > 1 && string(fields[1]) == strconv.Itoa(parent) {
			pid, err := strconv.Atoi(filepath.Base(filepath.Dir(path)))
			if err != nil {
				return nil, err
			}
			children = append(children, pid)
		}
	}
	return children, nil
}

// programOf is the file name of a process' program.
func programOf(pid int) (string, error) {
	path, err := os.Readlink(fmt.Sprintf("/proc/%d/exe", pid))
	return filepath.Base(path), err
}
