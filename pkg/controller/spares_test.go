package controller

import (
	"testing"
	"time"
)

func TestWhichSpareInstancesMustGo(t *testing.T) {
	now := time.Unix(1_000_000, 0)
	before := func(d time.Duration) time.Time { return now.Add(-d) }
	known := map[string]bool{"scheduler-1": true}
	old := pod{created: before(time.Hour)}
	for name, c := range map[string]struct {
		pod        sparePod
		schedulers map[string]bool
		why        string
		again      time.Duration
	}{
		"one that waits":               {sparePod{old, "scheduler-1"}, known, "", orphanAge},
		"one whose agent has ended":    {sparePod{pod{created: before(time.Hour), ended: before(endedGrace)}, "scheduler-1"}, known, agentEnded, 0},
		"one that has just ended":      {sparePod{pod{created: before(time.Hour), ended: before(endedGrace - time.Second)}, "scheduler-1"}, known, "", time.Second},
		"one that is being deleted":    {sparePod{pod{created: before(time.Hour), deleting: true}, "gone"}, known, "", 0},
		"one whose scheduler is gone":  {sparePod{old, "gone"}, known, schedulerGone, 0},
		"one of a new scheduler":       {sparePod{pod{created: before(orphanAge - time.Second)}, "new"}, known, "", time.Second},
		"one while nobody is known of": {sparePod{old, "gone"}, nil, "", orphanAge},
	} {
		if why, again := spareDoom(c.pod, c.schedulers, now); why != c.why || again != c.again {
			t.Errorf("%s: %q, again in %v; want %q, %v", name, why, again, c.why, c.again)
		}
	}
}
