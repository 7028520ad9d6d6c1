package process

import (
	"log/slog"
	"os/exec"

	"golang.org/x/sys/unix"
)

// limiter starts processes within limits. It is used by one goroutine.
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

// start starts a function within its limits. Its goroutine must have locked its thread.
func (l *limiter) start(function *exec.Cmd, want limits) error {
	if err := l.onCores(want.cores, function.Start); err != nil {
		return err
	}
	l.limitMemory(function.Process.Pid, want.dataBytes)
	return nil
}

// onCores calls fork while this thread may run on n cores only, from which a child inherits that. A
// child that was limited after its start could have threads that are not, and have seen more
// cores.
func (l *limiter) onCores(n int, fork func() error) error {
	var picked []int
	picked, l.next = pickCores(l.cores, l.next, n)
	if len(picked) == 0 {
		return fork()
	}
	var own, few unix.CPUSet
	for _, core := range picked {
		few.Set(core)
	}
	err := unix.SchedGetaffinity(0, &own)
	if err == nil {
		err = unix.SchedSetaffinity(0, &few)
	}
	if err != nil {
		l.warnCPU(err)
		return fork()
	}
	defer func() {
		// The agent, and the next function, are forked by this thread, too.
		if err := unix.SchedSetaffinity(0, &own); err != nil {
			l.log.Warn("instances start on fewer cores than there are", "err", err)
		}
	}()
	return fork()
}

// limitMemory limits a process that was just started. Its threads have the limit, too, and the
// processes that it starts from now on. It cannot have it from its start: this thread shares its own
// limit with all of Windlass.
func (l *limiter) limitMemory(pid int, bytes uint64) {
	if bytes == 0 {
		return
	}
	bound := &unix.Rlimit{Cur: bytes, Max: bytes}
	if err := unix.Prlimit(pid, unix.RLIMIT_DATA, bound, nil); err != nil && !l.memoryFailed {
		l.memoryFailed = true
		l.log.Warn("memory limits are not enforced", "err", err)
	}
}

func (l *limiter) warnCPU(err error) {
	if !l.cpuFailed {
		l.cpuFailed = true
		l.log.Warn("CPU limits are not enforced", "err", err)
	}
}
