package process

import (
	"log/slog"

	"golang.org/x/sys/unix"
)

// limiter sets limits on processes. It is used by one goroutine.
type limiter struct {
	log *slog.Logger
	// cores are the cores that Windlass itself may use.
	cores []int
	// next is the position of the core to hand out next.
	next int

	// memoryFailed and cpuFailed say that it was logged that a limit does nothing.
	memoryFailed, cpuFailed bool
}

func newLimiter(log *slog.Logger) *limiter {
	l := &limiter{log: log}
	var set unix.CPUSet
	// Without an answer no core is known and CPU limits do nothing.
	if err := unix.SchedGetaffinity(0, &set); err != nil {
		l.warnCPU(err)
		return l
	}
	for core := range len(set) * 64 {
		if set.IsSet(core) {
			l.cores = append(l.cores, core)
		}
	}
	return l
}

// apply limits a process that was just started. Threads and processes that it
// starts from now on inherit both limits.
func (l *limiter) apply(pid int, want limits) {
	if want.dataBytes > 0 {
		bound := &unix.Rlimit{Cur: want.dataBytes, Max: want.dataBytes}
		if err := unix.Prlimit(pid, unix.RLIMIT_DATA, bound, nil); err != nil && !l.memoryFailed {
			l.memoryFailed = true
			l.log.Warn("memory limits are not enforced", "err", err)
		}
	}
	var picked []int
	picked, l.next = pickCores(l.cores, l.next, want.cores)
	if len(picked) == 0 {
		return
	}
	var set unix.CPUSet
	for _, core := range picked {
		set.Set(core)
	}
	if err := unix.SchedSetaffinity(pid, &set); err != nil {
		l.warnCPU(err)
	}
}

func (l *limiter) warnCPU(err error) {
	if !l.cpuFailed {
		l.cpuFailed = true
		l.log.Warn("CPU limits are not enforced", "err", err)
	}
}
