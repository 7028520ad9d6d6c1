package etcd

import (
	"time"

	"github.com/windlass-dev/windlass/internal/backoff"
)

// newRetry is how long to pause where etcd could not be asked.
func newRetry() *backoff.Backoff {
	return &backoff.Backoff{First: 100 * time.Millisecond, Last: 2 * time.Second}
}
