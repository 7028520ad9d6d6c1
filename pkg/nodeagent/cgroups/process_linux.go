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

// OwnCores are the numbers of the cores on which this process may run; none if that cannot be found out.
func OwnCores() []int {
	var set unix.CPUSet
	if unix.SchedGetaffinity(0, &set) != nil {
		return nil
	}
	cores := make([]int, 0, set.Count())
	for n := 0; len(cores) < set.Count(); n++ {
		if set.IsSet(n) {
			cores = append(cores, n)
		}
	}
	return cores
}
