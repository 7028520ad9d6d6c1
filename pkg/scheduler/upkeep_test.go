package scheduler

import (
	"fmt"
	"slices"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/windlass-dev/windlass/api/v1alpha1"
	"github.com/windlass-dev/windlass/pkg/provisioner"
	"github.com/windlass-dev/windlass/pkg/queue"
)

func window(start string, hours int, least int32) func(*v1alpha1.Function) {
	return func(fn *v1alpha1.Function) {
		fn.Spec.Scaling.Schedule = append(fn.Spec.Scaling.Schedule, v1alpha1.ScheduleWindow{
			Start: start, Duration: metav1.Duration{Duration: time.Duration(hours) * time.Hour}, Min: least,
		})
	}
}

func learning(fn *v1alpha1.Function) { fn.Spec.Scaling.KeepAlive = v1alpha1.KeepAliveHistogram }

func TestUpkeepIsTheHighestFloorUntilItsSoonestChange(t *testing.T) {
	midnight := time.Date(2026, 3, 2, 0, 0, 0, 0, time.UTC)
	at := func(hours, minutes int) time.Time {
		return midnight.Add(time.Duration(hours)*time.Hour + time.Duration(minutes)*time.Minute)
	}
	u := newUpkeeper(newTestFunction("f", window("0 8 * * *", 2, 3), window("0 9 * * *", 3, 5), learning), nil)
	for range 12 { // always half an hour
		u.calledAfter(30*time.Minute + 30*time.Second)
	}
	for name, tt := range map[string]struct {
		now, idleSince time.Time
		want           upkeep
	}{
		"outside of windows, with calls":    {now: at(7, 0), want: upkeep{change: at(8, 0)}},
		"a window is open":                  {now: at(8, 30), want: upkeep{scheduled: 3, change: at(9, 0)}},
		"two are, and the higher one wins":  {now: at(9, 30), want: upkeep{scheduled: 5, change: at(10, 0)}},
		"it has just become idle":           {now: at(1, 0), idleSince: at(1, 0), want: upkeep{planned: true, kept: true, change: at(1, 1)}},
		"the next call is far":              {now: at(1, 2), idleSince: at(1, 0), want: upkeep{planned: true, change: at(1, 27).Add(-time.Second)}},
		"it is near":                        {now: at(1, 28), idleSince: at(1, 0), want: upkeep{planned: true, kept: true, awaited: 1, change: at(1, 34).Add(6 * time.Second)}},
		"it did not come":                   {now: at(1, 50), idleSince: at(1, 0), want: upkeep{planned: true, change: at(8, 0)}},
		"it is near and a window is open":   {now: at(9, 29), idleSince: at(9, 0), want: upkeep{scheduled: 5, planned: true, kept: true, awaited: 1, change: at(9, 34).Add(6 * time.Second)}},
		"a window begins before it is near": {now: at(7, 50), idleSince: at(7, 45), want: upkeep{planned: true, change: at(8, 0)}},
	} {
		t.Run(name, func(t *testing.T) {
			u.until = time.Time{} // it was not asked before
			if got := u.at(tt.now, tt.idleSince, time.Second); got != tt.want {
				t.Errorf("got %+v, want %+v", got, tt.want)
			}
		})
	}
}

func TestAFunctionWithoutScheduleAndLearningHasNoUpkeep(t *testing.T) {
	u := newUpkeeper(newTestFunction("f"), nil)
	u.calledAfter(time.Hour)
	if got := u.at(time.Unix(1, 0), time.Unix(0, 0), time.Second); got != (upkeep{}) {
		t.Errorf("got %+v", got)
	}
}

func TestWhatIdleTimesTaughtSurvivesAChangeUnlessLearningEnds(t *testing.T) {
	fn := newTestFunction("f", learning)
	u := newUpkeeper(fn, nil)
	for range 12 {
		u.calledAfter(30 * time.Minute)
	}
	if !u.taught {
		t.Fatal("twelve times half an hour teach nothing")
	}
	if again := newUpkeeper(fn, u); !again.taught || again.plan != u.plan {
		t.Error("a change of the function made it forget")
	}
	scheduled := newUpkeeper(newTestFunction("f", window("0 8 * * *", 1, 1)), u)
	if newUpkeeper(fn, scheduled).taught {
		t.Error("it knows of the time when it did not learn")
	}
}

func TestTheMostWinsOverEveryFloor(t *testing.T) {
	for name, tt := range map[string]struct {
		kept upkeep
		want int
	}{
		"the spec's least":   {upkeep{}, 2},
		"a window's":         {upkeep{scheduled: 3}, 3},
		"an awaited call's":  {upkeep{awaited: 1}, 2},
		"more than the most": {upkeep{scheduled: 9}, 4},
	} {
		if got := limits(newTestFunction("f", minInstances(2), maxInstances(4)), tt.kept); got.Min != tt.want || got.Max != 4 {
			t.Errorf("%s: %+v, want a least of %d", name, got, tt.want)
		}
	}
}

func TestWhenInstancesMayLeave(t *testing.T) {
	now := time.Unix(10_000, 0)
	for name, tt := range map[string]struct {
		kept upkeep
		want queue.LeavePolicy
	}{
		"by the fixed times": {
			upkeep{}, queue.LeavePolicy{IdleTimeout: 10*time.Minute + 10*time.Second, KeepLast: time.Hour},
		},
		"the last one not before its plan ends": {
			upkeep{planned: true, kept: true, change: now.Add(time.Minute)},
			queue.LeavePolicy{IdleTimeout: 10*time.Minute + 10*time.Second, KeepLast: 21 * time.Minute},
		},
		"all at once": {upkeep{planned: true}, queue.LeavePolicy{}},
	} {
		if got := leavePolicy(newTestFunction("f"), tt.kept, 20*time.Minute, now); got != tt.want {
			t.Errorf("%s: %+v, want %+v", name, got, tt.want)
		}
	}
}

func TestAWindowRaisesTheLeastWhileItIsOpen(t *testing.T) {
	inWorld(t, defaults(), func(w *world) { // which begins at midnight
		fn := w.put("f", window("0 8 * * *", 1, 2))
		w.after(8*time.Hour - time.Second)
		w.started(fn, 0)
		if n := len(w.scheduler.active); n != 0 {
			t.Errorf("%d functions are active hours before", n)
		}
		w.after(time.Second + w.scheduler.config.Tick)
		specs := w.started(fn, 2)
		a, b := w.ready(specs[0]), w.ready(specs[1])
		w.after(30 * time.Minute)
		b.askToLeave(30 * time.Minute)
		b.expect("leave: false, ask again in 10m10s")
		w.after(time.Hour)
		b.askToLeave(90 * time.Minute)
		b.expect("leave: true, ask again in 100ms")
		a.expect()
		w.started(fn, 0)
		w.after(22 * time.Hour)
		a.askToLeave(22 * time.Hour)
		a.expect("leave: true, ask again in 100ms")
		w.after(30 * time.Minute)
		w.started(fn, 2) // the next day
	})
}

// taught lets a function be called every half hour, until its idle times teach
// something: with the end of its last call.
func (w *world) taught(fn *v1alpha1.Function, g *gateway) *agent {
	w.t.Helper()
	g.offer(fn, 0)
	a := w.ready(w.started(fn, 1)[0])
	for n := range 11 {
		if n > 0 {
			w.after(30 * time.Minute)
			g.offer(fn, n)
		}
		a.expect(fmt.Sprintf("ticket %04d at g:1", n))
		w.after(time.Second)
		a.pull(1, doneWith(n, time.Second))
	}
	w.started(fn, 0)
	return a
}

func TestAnInstanceLeavesAndComesAsTheIdleTimesTeach(t *testing.T) {
	inWorld(t, defaults(), func(w *world) {
		fn, g := w.put("f", learning), w.gateway("g:1")
		a := w.taught(fn, g)
		w.after(59 * time.Second)
		a.expect()
		w.after(2 * time.Second)
		a.expect("retire: no call is near")
		a.obey()
		w.after(25*time.Minute + 50*time.Second)
		w.expectCounts(fn, provisioner.Counts{})
		w.after(10 * time.Second)
		ahead := w.ready(w.started(fn, 1)[0])
		w.after(2 * time.Minute)
		g.offer(fn, 100)
		ahead.expect("ticket 0100 at g:1") // and nothing was created for it
		w.started(fn, 0)

		// A call that does not come is not awaited for ever.
		ahead.pull(1, doneWith(100, time.Second))
		w.after(time.Minute + time.Second)
		ahead.expect("retire: no call is near")
		ahead.obey()
		w.after(25*time.Minute + 10*time.Second) // one of the idle times was shorter
		awaiting := w.ready(w.started(fn, 1)[0])
		w.after(10 * time.Minute)
		awaiting.expect("retire: no call is near")
		awaiting.obey()
		w.after(3 * time.Hour)
		w.started(fn, 0)
		if got := w.scrape("function")["instances_released_total{f,ns}"]; got < 3 {
			t.Errorf("%v are counted as released", got)
		}
	})
}

func TestAnAwaitedCallsInstanceIsNotEvicted(t *testing.T) {
	config := defaults()
	config.node = 100
	inWorld(t, config, func(w *world) {
		fn, g := w.put("f", learning), w.gateway("g:1")
		a := w.taught(fn, g)
		w.after(time.Minute + time.Second)
		a.obey()
		w.after(26 * time.Minute)
		ahead := w.ready(w.started(fn, 1)[0])
		w.after(time.Minute)
		g.offer(w.put("other"), 200)
		w.after(3 * time.Second)
		ahead.expect()
	})
}

func TestOthersAreNotReleasedForWantOfAPlan(t *testing.T) {
	inWorld(t, defaults(), func(w *world) {
		fn, g := w.put("f"), w.gateway("g:1")
		a := w.taught(fn, g)
		w.after(25 * time.Minute)
		if heard := a.heard(); slices.Contains(heard, "retire: no call is near") {
			t.Errorf("heard %q", heard)
		}
	})
}
