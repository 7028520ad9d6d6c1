//go:build !linux

package process

import (
	"log/slog"
	"os/exec"
)

// limiter would start processes within limits; this system has no means to. It is used by
// one goroutine.
type limiter struct {
	log *slog.Logger
	// failed says that it was logged that limits do nothing.
	failed bool
}

func newLimiter(log *slog.Logger) *limiter { return &limiter{log: log} }

// start starts a function, and warns once, at the first limit, that limits are not enforced.
func (l *limiter) start(function *exec.Cmd, want limits) error {
	if want != (limits{}) && !l.failed {
		l.failed = true
		l.log.Warn("memory and CPU limits are not enforced", "reason", "this operating system cannot limit a process")
	}
	return function.Start()
}
