package kerneltimer

import (
	"testing"
	"time"
)

// nothing fails if there is a call within 50 ms.
func nothing(t *testing.T, due <-chan time.Time) {
	t.Helper()
	select {
	case <-due:
		t.Error("it is due")
	case <-time.After(50 * time.Millisecond):
	}
}

func TestATimerIsDueOnceForEachReset(t *testing.T) {
	for name, start := range map[string]func(func()) Waker{"of the kernel": NewOrGo, "of Go": Go} {
		t.Run(name, func(t *testing.T) {
			due := make(chan time.Time, 100)
			timer := start(func() { due <- time.Now() })
			defer timer.Stop()
			nothing(t, due)
			for _, after := range []time.Duration{20 * time.Millisecond, 0, -time.Second} {
				began := time.Now()
				timer.Reset(after)
				if took := (<-due).Sub(began); took < after {
					t.Errorf("it was due after %s, want %s", took, after)
				}
				nothing(t, due)
			}
			timer.Reset(time.Hour)
			nothing(t, due)
			timer.Reset(0)
			<-due
		})
	}
}
