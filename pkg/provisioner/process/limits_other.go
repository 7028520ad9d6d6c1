//go:build !linux

package process

import (
	"log/slog"
	"sync"
)

// limiter would set limits on processes; this system has no means to.
type limiter struct {
	log  *slog.Logger
	once sync.Once
}

func newLimiter(log *slog.Logger) *limiter { return &limiter{log: log} }

// apply says, the first time it is asked for a limit, that there is none.
func (l *limiter) apply(_ int, want limits) {
	if want == (limits{}) {
		return
	}
	l.once.Do(func() {
		l.log.Warn("memory and CPU limits are not enforced", "reason", "this operating system cannot limit a process")
	})
}
