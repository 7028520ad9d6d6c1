package sleep

import (
	"context"
	"time"
)

// For waits for d, or until ctx ends, and says whether all of d has passed.
func For(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C:
		return true
	}
}
