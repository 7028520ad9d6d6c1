package floor

import (
	"testing"
	"time"

	"pgregory.net/rapid"
)

var noon = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)

func TestPlan(t *testing.T) {
	const m = time.Minute
	hourly := Windows{Prewarm: 54 * m, KeepAlive: 13 * m}
	stay := Windows{KeepAlive: 11 * m}
	keep := func(until time.Duration) Plan { return Plan{Keep: true, Change: noon.Add(until)} }
	gone := func(until time.Duration) Plan { return Plan{Change: noon.Add(until)} }
	await := func(until time.Duration) Plan { return Plan{Keep: true, Floor: 1, Change: noon.Add(until)} }
	for name, c := range map[string]struct {
		windows Windows
		idle    time.Duration
		start   time.Duration
		want    Plan
	}{
		"just idle":                       {hourly, 0, 3 * time.Second, keep(m)},
		"almost a minute":                 {hourly, m - 1, 3 * time.Second, keep(m)},
		"too early for a call":            {hourly, m, 3 * time.Second, gone(54*m - 3*time.Second)},
		"as long before as a start takes": {hourly, 54*m - 3*time.Second, 3 * time.Second, await(67 * m)},
		"an unknown start":                {hourly, 54*m - 1, 0, gone(54 * m)},
		"the last moment":                 {hourly, 67*m - 1, 0, await(67 * m)},
		"too late for a call":             {hourly, 67 * m, 0, Plan{}},
		"no pre-warming":                  {stay, 0, time.Second, keep(11 * m)},
		"no pre-warming, later":           {stay, 11*m - 1, time.Second, keep(11 * m)},
		"no pre-warming, too late":        {stay, 11 * m, time.Second, Plan{}},
		"away for too short":              {Windows{3 * m, 2 * m}, m, 0, keep(5 * m)},
		"away for just long enough":       {Windows{3*m + 1, 2 * m}, m, 0, gone(3*m + 1)},
		"a start as long as the absence":  {Windows{9 * m, 2 * m}, m, 4 * m, keep(11 * m)},
		"a start that is shorter":         {Windows{9 * m, 2 * m}, m, 4*m - 1, gone(5*m + 1)},
		"a start as long as the wait":     {Windows{5 * m, 2 * m}, m, 10 * m, keep(7 * m)},
		"before it was idle":              {hourly, -m, 0, keep(m)},
	} {
		t.Run(name, func(t *testing.T) {
			if got := c.windows.Plan(noon, noon.Add(c.idle), c.start); got != c.want {
				t.Errorf("got %v, want %v", got, c.want)
			}
		})
	}
}

// TestPlansFollowEachOther walks from change to change.
func TestPlansFollowEachOther(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		duration := func(label string, most time.Duration) time.Duration {
			return time.Duration(rapid.Int64Range(0, int64(most)).Draw(t, label))
		}
		w := Windows{Prewarm: duration("prewarm", Range), KeepAlive: Bin + duration("keep", Range)}
		start := duration("start", 10*time.Minute)
		p := w.Plan(noon, noon, start)
		if !p.Keep || p.Floor != 0 {
			t.Fatalf("a function that was just called has the plan %v", p)
		}
		now, plans, kept := noon, 0, time.Duration(0)
		for ; !p.Change.IsZero(); plans++ {
			within := now.Add(time.Duration(rapid.Int64Range(0, int64(p.Change.Sub(now)-1)).Draw(t, "within")))
			if again := w.Plan(noon, within, start); again != p {
				t.Fatalf("at %v the plan is %v, but before its change it was %v", within, again, p)
			}
			if p.Floor > 0 && !p.Keep {
				t.Fatalf("an instance is started that is not kept: %v", p)
			}
			if p.Keep {
				kept += p.Change.Sub(now)
			}
			now, p = p.Change, w.Plan(noon, p.Change, start)
		}
		if end := noon.Add(w.Prewarm + w.KeepAlive); !now.Equal(end) || p != (Plan{}) {
			t.Fatalf("it ends at %v with %v, not at %v with nothing", now, p, end)
		}
		if plans > 3 || kept > w.Prewarm+w.KeepAlive {
			t.Fatalf("there are %d plans, and an instance is there for %v", plans, kept)
		}
		likely := noon.Add(w.Prewarm + w.KeepAlive/2)
		if got := w.Plan(noon, likely, start); !got.Keep {
			t.Fatalf("when a call is likely, the plan is %v", got)
		}
	})
}
