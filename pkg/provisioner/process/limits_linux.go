package process

import (
	"errors"
	"log/slog"
	"os"
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
	// cannotTrace says that the kernel lets this process trace no children.
	cannotTrace bool
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
	return l.onCores(want.cores, func() error {
		if want.dataBytes == 0 {
			return function.Start()
		}
		return l.beforeItRuns(function, func(pid int) { l.limitMemory(pid, want.dataBytes) })
	})
}

// beforeItRuns starts a function and calls limit before its program has run an instruction: the
// kernel stops a traced child as soon as it has loaded its program. Where it lets no process trace its
// children, such as in some sandboxes, limit is called just after the start.
func (l *limiter) beforeItRuns(function *exec.Cmd, limit func(pid int)) error {
	untraced := exec.Cmd{Path: function.Path, Args: function.Args, Env: function.Env, Dir: function.Dir, Stdin: function.Stdin, Stdout: function.Stdout,
		Stderr: function.Stderr, ExtraFiles: function.ExtraFiles, SysProcAttr: function.SysProcAttr, Err: function.Err}
	if !l.cannotTrace {
		attr := *function.SysProcAttr
		attr.Ptrace = true
		function.SysProcAttr = &attr
		if err := function.Start(); err == nil {
			defer letRun(function.Process)
			awaitStop(function.Process.Pid)
			limit(function.Process.Pid)
			return nil
		}
		*function = untraced
	}
	if err := function.Start(); err != nil {
		return err
	}
	// What failed before was the tracing.
	l.cannotTrace = true
	limit(function.Process.Pid)
	return nil
}

// awaitStop returns when a traced child has stopped or ended. It reaps nothing.
func awaitStop(pid int) {
	for {
		err := unix.Waitid(unix.P_PID, pid, nil, unix.WSTOPPED|unix.WEXITED|unix.WNOWAIT, nil)
		if !errors.Is(err, unix.EINTR) {
			return
		}
	}
}

// letRun lets a stopped child run. One that has ended meanwhile is no longer there; any
// other would stay stopped.
func letRun(child *os.Process) {
	if err := unix.PtraceDetach(child.Pid); err != nil {
		_ = child.Kill()
	}
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

// limitMemory limits a process, and those that it starts from now on. A child cannot inherit the limit
// from this thread, which shares its own with all of Windlass.
func (l *limiter) limitMemory(pid int, bytes uint64) {
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
