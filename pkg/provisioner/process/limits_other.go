//go:build !linux

package process

import "log/slog"

// limiter would set limits on processes; this system has no means to. It is used by
// one goroutine.
type limiter struct {
	log *slog.Logger
	// failed says that it was logged that limits do nothing.
	failed bool
}

func newLimiter(log *slog.Logger) *limiter { return &limiter{log: log} }

// apply warns once, at the first limit, that limits are not enforced.
func (l *limiter) apply(_ int, want limits) {
	if want == (limits{}) || l.failed {
		return
	}
	l.failed = true
	l.log.Warn("memory and CPU limits are not enforced", "reason", "this operating system cannot limit a process")
}
