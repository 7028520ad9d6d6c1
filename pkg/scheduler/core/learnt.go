package core

import (
	"time"

	"github.com/windlass-dev/windlass/pkg/autoscaler/estimate"
)

// learnt is how long the last executions and starts took.
type learnt struct{ executions, starts estimate.LastN }

func newLearnt(c *Config) learnt {
	return learnt{executions: *estimate.NewLastN(c.Executions), starts: *estimate.NewLastN(c.Executions)}
}

// meanStart is how long an instance takes to start: as the last ones did, or else as
// those of its kind, within the timeout; 0 if that is not known either.
func (l *learnt) meanStart(kind, timeout time.Duration) time.Duration {
	if own := l.starts.Mean(); own > 0 {
		return own
	}
	return min(kind, timeout)
}
