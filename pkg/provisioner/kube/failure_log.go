package kube

import (
	"log/slog"
	"sync"
	"time"
)

// failureLogInterval is the shortest time between two lines of a failureLog.
const failureLogInterval = time.Minute

// failureLog logs requests that failed. While the API is away all of them fail, so there is a line for
// the first failure, and later one for all others.
type failureLog struct {
	log *slog.Logger

	mu sync.Mutex
	// failures are those since the last line, and last is when that was logged.
	failures int
	last     time.Time
}

// warn counts a failure, and logs it if a line is due.
func (l *failureLog) warn(message string, args ...any) {
	l.mu.Lock()
	l.failures++
	now, failures := time.Now(), l.failures
	due := now.Sub(l.last) >= failureLogInterval
	if due {
		l.last, l.failures = now, 0
	}
	l.mu.Unlock()
	if due {
		l.log.With("failures", failures).Warn(message, args...)
	}
}
