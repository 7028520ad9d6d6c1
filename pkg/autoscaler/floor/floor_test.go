package floor

import (
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/windlass-dev/windlass/internal/schedule"
	"github.com/windlass-dev/windlass/pkg/queue"
)

func window(t *testing.T, start string, hours, least int) schedule.Window {
	t.Helper()
	parsed, err := schedule.ParseStart(start)
	if err != nil {
		t.Fatal(err)
	}
	return schedule.Window{Start: parsed, Zone: time.UTC, Duration: time.Duration(hours) * time.Hour, Min: least}
}

// taught is a Keeper of a function that is always idle for half an hour.
func patterned(windows ...schedule.Window) *Policy {
	k := New(windows, true, time.Minute, nil)
	for range 12 {
		k.CalledAfter(30*time.Minute + 30*time.Second)
	}
	return k
}

func TestTheFloorIsTheHighestFloorUntilItsSoonestChange(t *testing.T) {
	midnight := time.Date(2026, 3, 2, 0, 0, 0, 0, time.UTC)
	at := func(hours, minutes int) time.Time {
		return midnight.Add(time.Duration(hours)*time.Hour + time.Duration(minutes)*time.Minute)
	}
	for name, tt := range map[string]struct {
		now, idleSince time.Time
		want           Floor
	}{
		"outside of windows, with calls":    {now: at(7, 0), want: Floor{Change: at(8, 0)}},
		"a window is open":                  {now: at(8, 30), want: Floor{Scheduled: 3, Change: at(9, 0)}},
		"two are, and the higher one wins":  {now: at(9, 30), want: Floor{Scheduled: 5, Change: at(10, 0)}},
		"it has just become idle":           {now: at(1, 0), idleSince: at(1, 0), want: Floor{Planned: true, Kept: true, Change: at(1, 1)}},
		"the next call is far":              {now: at(1, 2), idleSince: at(1, 0), want: Floor{Planned: true, Change: at(1, 27).Add(-time.Second)}},
		"it is near":                        {now: at(1, 28), idleSince: at(1, 0), want: Floor{Planned: true, Kept: true, Awaited: 1, Change: at(1, 34).Add(6 * time.Second)}},
		"it did not come":                   {now: at(1, 50), idleSince: at(1, 0), want: Floor{Planned: true, Change: at(8, 0)}},
		"it is near and a window is open":   {now: at(9, 29), idleSince: at(9, 0), want: Floor{Scheduled: 5, Planned: true, Kept: true, Awaited: 1, Change: at(9, 34).Add(6 * time.Second)}},
		"a window begins before it is near": {now: at(7, 50), idleSince: at(7, 45), want: Floor{Planned: true, Change: at(8, 0)}},
	} {
		t.Run(name, func(t *testing.T) {
			k := patterned(window(t, "0 8 * * *", 2, 3), window(t, "0 9 * * *", 3, 5))
			if got := k.At(tt.now, tt.idleSince, time.Second); got != tt.want {
				t.Errorf("got %+v, want %+v", got, tt.want)
			}
		})
	}
}

func TestAClockThatIsSetBackOpensAndClosesWindows(t *testing.T) {
	k := New([]schedule.Window{window(t, "0 8 * * *", 2, 3)}, false, time.Minute, nil)
	day := time.Date(2026, 3, 2, 0, 0, 0, 0, time.UTC)
	for _, tt := range []struct{ hour, want int }{{12, 0}, {9, 3}, {7, 0}, {8, 3}} {
		if got := k.At(day.Add(time.Duration(tt.hour)*time.Hour), time.Time{}, time.Second).Scheduled; got != tt.want {
			t.Errorf("at %d: at least %d, want %d", tt.hour, got, tt.want)
		}
	}
}

func TestAFunctionWithoutScheduleAndLearningHasNoFloor(t *testing.T) {
	k := New(nil, false, time.Hour, nil)
	k.CalledAfter(time.Hour)
	if got := k.At(time.Unix(1, 0), time.Unix(0, 0), time.Second); got != (Floor{}) || k.Patterned() {
		t.Errorf("got %+v, taught %v", got, k.Patterned())
	}
}

func TestWhatIdleTimesTaughtSurvivesAChangeUnlessLearningEnds(t *testing.T) {
	k := patterned()
	if !k.Patterned() {
		t.Fatal("twelve times half an hour teach nothing")
	}
	if again := New(nil, true, time.Minute, k); !again.Patterned() || again.keep != k.keep {
		t.Error("a change of the function made it forget")
	}
	scheduled := New([]schedule.Window{window(t, "0 8 * * *", 1, 1)}, false, time.Minute, k)
	if New(nil, true, time.Minute, scheduled).Patterned() {
		t.Error("it knows of the time when it did not learn")
	}
}

// Nobody who asks again at Change, and only then, is told anything else than who asks
// all the time.
func TestTheFloorHoldsUntilItsChange(t *testing.T) {
	windows := []schedule.Window{window(t, "*/40 * * * *", 1, 3), window(t, "15 3 * * *", 5, 7)}
	rapid.Check(t, func(t *rapid.T) {
		k := patterned(windows[:rapid.IntRange(0, 2).Draw(t, "windows")]...)
		now := time.Unix(int64(rapid.IntRange(0, 1<<30).Draw(t, "now")), 0)
		var idleSince time.Time
		if rapid.Bool().Draw(t, "idle") {
			idleSince = now.Add(-time.Duration(rapid.IntRange(0, 7200).Draw(t, "for")) * time.Second)
		}
		start := time.Duration(rapid.IntRange(0, 100).Draw(t, "start")) * time.Second
		u := k.At(now, idleSince, start)
		if !u.Change.IsZero() && !u.Change.After(now) {
			t.Fatalf("%+v changes in the past of %v", u, now)
		}
		later := now.Add(time.Duration(rapid.IntRange(0, 86400).Draw(t, "later")) * time.Second)
		if !u.Change.IsZero() && !later.Before(u.Change) {
			return
		}
		again := k.At(later, idleSince, start)
		again.Change = u.Change
		if again != u {
			t.Fatalf("at %v %+v, which is to hold until then, and at %v %+v", now, u, later, again)
		}
	})
}

func TestWhenIdleInstancesMayLeave(t *testing.T) {
	now := time.Unix(1000, 0)
	own := queue.LeavePolicy{Min: 1, IdleTimeout: 10 * time.Minute, KeepLast: time.Hour}
	for name, tt := range map[string]struct {
		floor    Floor
		want     queue.LeavePolicy
		releases bool
	}{
		"nothing is learnt": {floor: Floor{Scheduled: 3}, want: own},
		"the last one is kept until the plan changes": {
			floor: Floor{Planned: true, Kept: true, Change: now.Add(7 * time.Minute)},
			want:  queue.LeavePolicy{Min: 1, IdleTimeout: 10 * time.Minute, KeepLast: 9 * time.Minute},
		},
		"none is kept": {floor: Floor{Planned: true}, want: queue.LeavePolicy{Min: 1}, releases: true},
	} {
		if got := tt.floor.Leave(own, 2*time.Minute, now); got != tt.want {
			t.Errorf("%s: %+v, want %+v", name, got, tt.want)
		}
		if got := tt.floor.ReleasesIdle(); got != tt.releases {
			t.Errorf("%s: releases idle instances: %v", name, got)
		}
	}
}

func TestTheMinimumIsTheHighestOfAll(t *testing.T) {
	u := Floor{Scheduled: 3, Awaited: 1}
	if got := [...]int{u.Min(0), u.Min(5), (Floor{Awaited: 1}).Min(0)}; got != [...]int{3, 5, 1} {
		t.Errorf("the minimums are %v, want 3, 5, 1", got)
	}
}
