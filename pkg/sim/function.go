package sim

import (
	"time"

	"github.com/windlass-dev/windlass/pkg/queue/intake"
	"github.com/windlass-dev/windlass/pkg/scheduler/core"
)

// startupTimeout is how long an instance may take to start.
const startupTimeout = 3 * time.Second

// spec is what the function's owner asks for. Its limits bound only what comes at once.
func (f *function) spec() core.Spec {
	s := core.Spec{
		Revision: decimal(f.revision), Concurrency: f.concurrency, Timeout: f.timeout, StartupTimeout: startupTimeout,
		Decide: f.decide, Max: f.max, BackoffAfter: backoffAfter, IdleTimeout: idleTimeout, KeepLast: time.Hour,
	}
	switch f.index % 3 {
	case 0:
		s.Calls = intake.Limits{Rate: 10, Burst: 20}
	case 1:
		s.Calls = intake.Limits{Concurrency: 8}
	}
	return s
}

// faulty tells whether something may go wrong by itself.
func (w *World) faulty() bool { return !w.calm && w.config.Faults > 0 }
