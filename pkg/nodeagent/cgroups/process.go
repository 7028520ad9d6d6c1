package cgroups

import (
	"errors"
	"fmt"
	"time"
)

// Process stands for a Group where there are none: it measures one process, and has no bands.
type Process struct{ pid int }

// ForProcess returns the stand-in for a process. What the process has started is not in it.
func ForProcess(pid int) Process { return Process{pid} }

// Usage is the processor time that the process has used so far.
func (p Process) Usage() (time.Duration, error) { return processTime(p.pid) }

// SetLow fails with errors.ErrUnsupported.
func (p Process) SetLow(bool) error {
	return fmt.Errorf("cgroups: a process without a cgroup has no bands: %w", errors.ErrUnsupported)
}

// Close does nothing.
func (p Process) Close() error { return nil }
