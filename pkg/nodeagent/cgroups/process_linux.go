package cgroups

import (
	"time"

	"golang.org/x/sys/unix"
)

// processTime reads the clock of a process: the kernel's number for it is made of the PID's
// complement and 2, which stands for what its scheduler counts.
func processTime(pid int) (time.Duration, error) {
	var t unix.Timespec
	if err := unix.ClockGettime(^int32(pid)<<3|2, &t); err != nil {
		return 0, err
	}
	return time.Duration(t.Nano()), nil
}
