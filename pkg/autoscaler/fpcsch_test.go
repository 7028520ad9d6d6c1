package autoscaler

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

var params = Params{Tick: 100 * time.Millisecond}

// pulled is the memory after a tick at which so many had arrived.
func pulled(arrived uint64) State { return fpcschState{Tick: 3, Arrived: arrived, Before: arrived} }

func TestFPCSchConditions(t *testing.T) {
	cases := map[string]struct {
		s      Snapshot
		create int
		why    Reason
	}{
		"condition 1: 'no creating (and also created) container and also no processed function request'": {
			s: Snapshot{Arrived: 5}, create: 1, why: ReasonFirst,
		},
		"condition 1: 'Once the container creation starts, this condition is never met again'": {
			s: Snapshot{Arrived: 1, Creating: 1}, create: 0, why: ReasonEnough,
		},
		"condition 1: not for an instance that is created and about to pull": {
			s: Snapshot{Arrived: 1, Created: 1}, create: 0, why: ReasonNoDemand,
		},
		"condition 2: 'as many containers as requests in the queue are created'": {
			s: Snapshot{Arrived: 8, Creating: 1}, create: 7, why: ReasonBurst,
		},
		"condition 2: 'creating containers are excluded' when it is met again": {
			s: Snapshot{Arrived: 10, Creating: 8}, create: 2, why: ReasonBurst,
		},
		"condition 4, after a take-over: nothing was pulled here, and all adopted instances are busy": {
			s:      Snapshot{Arrived: 8, Created: 3, Busy: 3, MeanExecution: 20 * time.Second},
			create: 8, why: ReasonOverload,
		},
		"condition 3, a tick later": {
			s: Snapshot{
				Arrived: 9, Created: 3, Busy: 3, Creating: 4, MeanExecution: 100 * time.Millisecond,
				State: fpcschState{Tick: 1, Arrived: 8},
			},
			create: 5, why: ReasonCongestion,
		},
		"line 36: nothing is created while there are as many instances as waiting requests": {
			s:      Snapshot{Arrived: 104, Departed: 100, Created: 3, Creating: 1, State: pulled(100)},
			create: 0, why: ReasonNoDemand,
		},
		"condition 3: 'requests in the queue are more than arrival requests'": {
			// 50 wait, 10 arrived in the last tick; 20 ms each: 5 per tick and
			// instance, so 10 are required, and 4 are on their way.
			s: Snapshot{
				Arrived: 150, Departed: 100, Created: 2, Creating: 4,
				MeanExecution: 20 * time.Millisecond, State: pulled(140),
			},
			create: 6, why: ReasonCongestion,
		},
		"condition 3: 'more containers are provisioned', for created instances are not subtracted": {
			s: Snapshot{
				Arrived: 150, Departed: 100, Created: 30, Creating: 4,
				MeanExecution: 20 * time.Millisecond, State: pulled(140),
			},
			create: 6, why: ReasonCongestion,
		},
		"condition 4: 'the current number of containers fail to pull all the arrival requests'": {
			// All 50 arrived in the last tick, 4 instances can run 20 of them.
			s: Snapshot{
				Arrived: 150, Departed: 100, Created: 3, Creating: 1,
				MeanExecution: 20 * time.Millisecond, State: pulled(100),
			},
			create: 6, why: ReasonOverload,
		},
		"neither condition 3 nor 4: the instances have the power for all that arrived": {
			s: Snapshot{
				Arrived: 150, Departed: 100, Created: 20,
				MeanExecution: 20 * time.Millisecond, State: pulled(100),
			},
			create: 0, why: ReasonNoDemand,
		},
		"line 37: 'If the average execution time is not yet available', one request per tick": {
			s:      Snapshot{Arrived: 120, Departed: 100, Created: 5, State: pulled(100)},
			create: 15, why: ReasonOverload,
		},
		"line 45: never more than wait": {
			s: Snapshot{
				Arrived: 104, Departed: 100, MeanExecution: 10 * time.Second, State: pulled(104),
			},
			create: 4, why: ReasonCongestion,
		},
		"all instances have left: the first request of a known function": {
			s:      Snapshot{Arrived: 101, Departed: 100, MeanExecution: time.Second, State: pulled(100)},
			create: 1, why: ReasonOverload,
		},
		"an empty queue needs nothing": {
			s: Snapshot{Arrived: 100, Departed: 100, State: pulled(90)}, create: 0, why: ReasonNoDemand,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			d := FPCSch(tc.s, params)
			if d.Create != tc.create || d.Why != tc.why {
				t.Errorf("create %d because %s, want %d because %s", d.Create, d.Why, tc.create, tc.why)
			}
		})
	}
}

// "if TICK_INTERVAL = 100 ms and TavgFuncExec = 20ms, Pcontainer is 5.0"
// (IV-B).
func TestExecutionsPerTickIsThePapersExample(t *testing.T) {
	if got := executionsPerTick(20*time.Millisecond, 100*time.Millisecond); got != 5 {
		t.Errorf("got %v, want 5", got)
	}
}

// "After any requests have been pulled, tick increases only when its queue is
// not empty or any new requests arrive in the previous interval" (IV-B).
func TestTickAdvancesOnlyWithDemand(t *testing.T) {
	cases := map[string]struct {
		s    Snapshot
		want fpcschState
	}{
		"nothing pulled yet: S[0] stays zero": {
			s: Snapshot{Arrived: 9}, want: fpcschState{},
		},
		"pulled at an earlier owner": {
			s: Snapshot{Arrived: 9, Created: 1, Busy: 1}, want: fpcschState{Tick: 1, Arrived: 9},
		},
		"first pull": {
			s: Snapshot{Arrived: 9, Departed: 1}, want: fpcschState{Tick: 1, Arrived: 9},
		},
		"requests wait": {
			s:    Snapshot{Arrived: 9, Departed: 8, State: fpcschState{Tick: 4, Arrived: 9, Before: 2}},
			want: fpcschState{Tick: 5, Arrived: 9, Before: 9},
		},
		"new requests came and went": {
			s:    Snapshot{Arrived: 12, Departed: 12, State: fpcschState{Tick: 4, Arrived: 9, Before: 2}},
			want: fpcschState{Tick: 5, Arrived: 12, Before: 9},
		},
		"idle": {
			s:    Snapshot{Arrived: 9, Departed: 9, State: fpcschState{Tick: 4, Arrived: 9, Before: 2}},
			want: fpcschState{Tick: 4, Arrived: 9, Before: 2},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(State(tc.want), FPCSch(tc.s, params).State); diff != "" {
				t.Errorf("memory (-want +got):\n%s", diff)
			}
		})
	}
}

func anySnapshot(t *rapid.T) Snapshot {
	departed := rapid.Uint64Range(0, 1000).Draw(t, "departed")
	before := rapid.Uint64Range(0, departed).Draw(t, "before")
	return Snapshot{
		Departed:      departed,
		Arrived:       departed + rapid.Uint64Range(0, 500).Draw(t, "waiting"),
		Created:       rapid.IntRange(0, 100).Draw(t, "created"),
		Creating:      rapid.IntRange(0, 100).Draw(t, "creating"),
		Lost:          rapid.IntRange(0, 3).Draw(t, "lost"),
		MeanExecution: time.Duration(rapid.Int64Range(0, int64(time.Minute)).Draw(t, "mean")),
		State:         fpcschState{Tick: rapid.IntRange(0, 9).Draw(t, "tick"), Arrived: before, Before: before / 2},
	}
}

func TestFPCSchCreatesNoMoreThanWaitAndIsDeterministic(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := anySnapshot(t)
		d := FPCSch(s, params)
		if d.Create < 0 || d.Create > s.Waiting() {
			t.Fatalf("creates %d for %d waiting", d.Create, s.Waiting())
		}
		if d.Why == "" || (d.Create > 0) != (d.Why != ReasonNoDemand && d.Why != ReasonEnough) {
			t.Fatalf("creates %d because %q", d.Create, d.Why)
		}
		if again := FPCSch(copied(t, s), params); again != d {
			t.Fatalf("decided %+v, and %+v on a copy", d, again)
		}
	})
}

func TestBoundKeepsLimits(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := anySnapshot(t)
		l := Limits{Max: rapid.IntRange(0, 60).Draw(t, "max")}
		l.Min = rapid.IntRange(0, 60).Draw(t, "min")
		if l.Max > 0 {
			l.Min = min(l.Min, l.Max)
		}
		total := s.Created + s.Creating
		free := Bound(FPCSch(s, params), s, Limits{})
		d := Bound(FPCSch(s, params), s, l)
		if d.Create < 0 {
			t.Fatalf("creates %d", d.Create)
		}
		if l.Max > 0 && d.Create > 0 && total+d.Create > l.Max {
			t.Fatalf("%d instances where %d may be", total+d.Create, l.Max)
		}
		if total+d.Create < l.Min {
			t.Fatalf("%d instances where %d must be", total+d.Create, l.Min)
		}
		if free.Create+s.Creating < s.Lost {
			t.Fatalf("%d lost and %d created", s.Lost, free.Create)
		}
	})
}

func TestBoundSaysWhy(t *testing.T) {
	cases := map[string]struct {
		d      Decision
		s      Snapshot
		l      Limits
		create int
		why    Reason
	}{
		"lost instances are replaced":     {Decision{Why: ReasonNoDemand}, Snapshot{Created: 3, Lost: 2}, Limits{}, 2, ReasonReplace},
		"a minimum is kept without calls": {Decision{Why: ReasonNoDemand}, Snapshot{Created: 1}, Limits{Min: 3}, 2, ReasonMin},
		"a maximum cuts":                  {Decision{Create: 9, Why: ReasonBurst}, Snapshot{Creating: 1}, Limits{Max: 4}, 3, ReasonMax},
		"a maximum below what exists":     {Decision{Create: 9, Why: ReasonBurst}, Snapshot{Created: 5}, Limits{Max: 4}, 0, ReasonMax},
		"nothing to change":               {Decision{Create: 2, Why: ReasonOverload}, Snapshot{Created: 1}, Limits{Min: 1, Max: 4}, 2, ReasonOverload},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if d := Bound(tc.d, tc.s, tc.l); d.Create != tc.create || d.Why != tc.why {
				t.Errorf("create %d because %s, want %d because %s", d.Create, d.Why, tc.create, tc.why)
			}
		})
	}
}
