package podagent

import (
	"testing"
	"time"
)

func TestIdleAgentGoesQuietAndThenAsksToLeave(t *testing.T) {
	start := time.Unix(1_000_000, 0)
	limits := idleLimits{BackoffAfter: 10 * time.Second, IdleTimeout: 100 * time.Second, Jitter: 1.1}
	cases := map[string]struct {
		state idleness
		after time.Duration
		step  idleStep
		again time.Duration
	}{
		"a call runs":                       {idleness{}, 0, stepNone, 0},
		"just became idle":                  {idleness{Since: start}, 0, stepNone, 10 * time.Second},
		"waited for BackoffAfter":           {idleness{Since: start}, 10 * time.Second, stepQuiet, 110 * time.Second},
		"quiet":                             {idleness{Since: start, Quiet: true}, 20 * time.Second, stepNone, 100 * time.Second},
		"waited for IdleTimeout":            {idleness{Since: start, Quiet: true}, 120 * time.Second, stepAskToLeave, 0},
		"asked and not answered":            {idleness{Since: start, Quiet: true, Asked: true}, 130 * time.Second, stepNone, 0},
		"told to stay":                      {idleness{Since: start, Quiet: true, NotBefore: start.Add(time.Hour)}, 130 * time.Second, stepNone, time.Hour - 130*time.Second},
		"told to stay, and the time is up":  {idleness{Since: start, Quiet: true, NotBefore: start.Add(time.Hour)}, time.Hour, stepAskToLeave, 0},
		"woke up too late to be quiet only": {idleness{Since: start}, time.Hour, stepAskToLeave, 0},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			step, again := tc.state.next(start.Add(tc.after), limits)
			if step != tc.step || again != tc.again {
				t.Errorf("step %v, again in %v; want %v, %v", step, again, tc.step, tc.again)
			}
		})
	}
}
