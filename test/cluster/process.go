package cluster

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/windlass-dev/windlass/internal/sleep"
)

// process identifies one of our processes. A PID alone may be somebody else's by
// the time it is read back; a PID and its start are not.
type process struct {
	Name string `json:"name"`
	PID  int    `json:"pid"`
	// Start is in clock ticks since the machine's boot.
	Start string `json:"start"`
	// Boot identifies the boot that Start counts from.
	Boot string `json:"boot"`
}

// identify describes the running process with this PID.
func identify(name string, pid int) (process, error) {
	stat, err := readStat(pid)
	if err != nil {
		return process{}, err
	}
	return process{name, pid, stat.start, boot()}, nil
}

// alive reports whether the process has not ended.
func (p process) alive() bool {
	stat, err := readStat(p.PID)
	return err == nil && stat.start == p.Start && stat.state != "Z" && stat.state != "X" && boot() == p.Boot
}

// kill ends the process, and returns when the kernel has taken it down, or with
// the context.
func (p process) kill(ctx context.Context) error {
	for p.alive() {
		if err := syscall.Kill(p.PID, syscall.SIGKILL); err != nil && err != syscall.ESRCH {
			return fmt.Errorf("ending %s (pid %d): %w", p.Name, p.PID, err)
		}
		if !sleep.For(ctx, 10*time.Millisecond) {
			err := context.Cause(ctx)
			return fmt.Errorf("%s (pid %d) does not end: %w", p.Name, p.PID, err)
		}
	}
	return nil
}

type stat struct{ state, start string }

func readStat(pid int) (stat, error) {
	text, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return stat{}, err
	}
	return parseStat(string(text))
}

// parseStat reads fields 3 and 22; field 2, the name, may hold spaces and brackets.
func parseStat(text string) (stat, error) {
	fields := strings.Fields(text[strings.LastIndex(text, ")")+1:])
	if len(fields) < 20 {
		return stat{}, fmt.Errorf("unexpected content of /proc/PID/stat: %q", text)
	}
	return stat{state: fields[0], start: fields[19]}, nil
}

func boot() string {
	id, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(id))
}

// launcher starts processes from one thread, because the kernel ends them with
// the thread that made them, not with its process.
type launcher struct {
	work   chan func()
	detach bool
}

// newLauncher returns a launcher whose thread lives until close is called.
func newLauncher(detach bool) *launcher {
	l := &launcher{work: make(chan func()), detach: detach}
	go func() {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		for f := range l.work {
			f()
		}
	}()
	return l
}

func (l *launcher) close() { close(l.work) }

// start starts a command of this name. The process ends with this one unless
// the launcher detaches; ended is closed when it has ended.
func (l *launcher) start(name string, cmd *exec.Cmd) (p process, ended <-chan struct{}, err error) {
	if cmd.SysProcAttr == nil {
		cmd.SysProcAttr = &syscall.SysProcAttr{}
	}
	// Out of the terminal's group: its interrupt is for the starter alone.
	cmd.SysProcAttr.Setsid = true
	if !l.detach {
		cmd.SysProcAttr.Pdeathsig = syscall.SIGKILL
	}
	done := make(chan error)
	l.work <- func() { done <- cmd.Start() }
	if err := <-done; err != nil {
		return process{}, nil, fmt.Errorf("starting %s: %w", name, err)
	}
	p, err = identify(name, cmd.Process.Pid)
	if err != nil {
		return process{}, nil, fmt.Errorf("%s ended at once: %w", name, err)
	}
	over := make(chan struct{})
	go func() {
		cmd.Wait() //nolint:errcheck // That it has ended is all there is to know; its log says why.
		close(over)
	}()
	return p, over, nil
}
