package sleep

import (
	"testing"
	"time"
)

func TestAPaceIsKeptInTheLongRun(t *testing.T) {
	const events = 1000
	for name, c := range map[string]struct {
		between time.Duration // before each event, besides the pauses
		last    time.Duration // the time of the last one
	}{
		"as fast as it can": {0, (events - 1 - 10) * time.Millisecond},
		"slowly enough":     {time.Second, (events - 1) * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			p := Pace{Every: time.Millisecond, Burst: 10}
			var now time.Duration
			for range events - 1 {
				now += p.Next(now) + c.between
			}
			if now != c.last {
				t.Errorf("%d events took %v, want %v", events, now, c.last)
			}
		})
	}
}
