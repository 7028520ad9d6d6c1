package sleep

import (
	"context"
	"time"
)

// For waits for d, or until ctx ends, and reports whether all of d has passed.
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

// Until calls so periodically until it returns true or an error. If ctx ends before, the error
// is the cause of that.
func Until(ctx context.Context, every time.Duration, so func() (bool, error)) error {
	for {
		if yes, err := so(); yes || err != nil {
			return err
		}
		if !For(ctx, every) {
			return context.Cause(ctx)
		}
	}
}
