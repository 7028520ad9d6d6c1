package proctime

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"golang.org/x/sys/unix"
)

// CPU is the CPU time of a process.
func CPU(pid int) (time.Duration, error) {
	const allThreads = 2
	var at unix.Timespec
	if err := unix.ClockGettime(int32(^pid<<3|allThreads), &at); err != nil {
		return 0, fmt.Errorf("the CPU time of process %d: %w", pid, err)
	}
	return time.Duration(at.Nano()), nil
}

// Switches are the context switches of a process, voluntary or not.
func Switches(pid int) (int64, error) {
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
