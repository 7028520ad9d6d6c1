package autoscaler

import (
	"testing"
	"time"

	"pgregory.net/rapid"
)

// asked is a question to the rules with a limit of 100 and so much of it used, and with work of
// 20 ms: five calls an instance before one is stale.
func asked(change func(*openwhiskRules)) openwhiskRules {
	v := openwhiskRules{
		state: running, initialized: true, execution: 20 * time.Millisecond, staleAfter: 100 * time.Millisecond,
		room: unlimited,
	}
	change(&v)
	if v.room == unlimited {
		v.room = 100 - v.total()
	}
	return v
}

func TestOpenWhiskRules(t *testing.T) {
	cases := map[string]struct {
		ask  func(*openwhiskRules)
		want ruleResult
	}{
		"1a: no room: throttled": {
			func(v *openwhiskRules) { v.room, v.available = 0, 4 },
			ruleResult{why: ReasonNoRoom, throttle: throttleOn},
		},
		"1a: the same for one that is on its way": {
			func(v *openwhiskRules) { v.room, v.inProgress, v.available = -2, 1, 4 },
			ruleResult{why: ReasonNoRoom, throttle: throttleOn},
		},
		"1c: throttled and no room": {
			func(v *openwhiskRules) { v.state, v.room, v.available = namespaceThrottled, 0, 9 },
			ruleResult{why: ReasonNoRoom},
		},
		"1c: flushing and no room": {
			func(v *openwhiskRules) { v.state, v.room, v.available = flushing, 0, 9 },
			ruleResult{why: ReasonNoRoom},
		},
		"2: the first instance of a function of which nothing is known, even without calls": {
			func(v *openwhiskRules) { v.execution, v.initialized = 0, false },
			ruleResult{create: 1, why: ReasonFirst},
		},
		"2: not twice": {
			func(v *openwhiskRules) { v.execution = 0 },
			ruleResult{why: ReasonNoDemand},
		},
		"2: not while one is on its way": {
			func(v *openwhiskRules) { v.execution, v.initialized, v.inProgress, v.available = 0, false, 1, 1 },
			ruleResult{why: ReasonNoDemand},
		},
		"2: not where the duration is known": {
			func(v *openwhiskRules) { v.initialized = false },
			ruleResult{why: ReasonNoDemand},
		},
		"3: room again ends the throttle, and nothing is created at that tick": {
			func(v *openwhiskRules) { v.state, v.available, v.stale = namespaceThrottled, 50, 50 },
			ruleResult{why: ReasonEnough, throttle: throttleOff},
		},
		"4: all instances have left, and a call waits": {
			func(v *openwhiskRules) { v.available = 1 },
			ruleResult{create: 1, why: ReasonFirst},
		},
		"4: the same where the duration is not known any more": {
			func(v *openwhiskRules) { v.execution, v.available = 0, 2 },
			ruleResult{create: 1, why: ReasonFirst},
		},
		"4 before 7: a thousand calls at once and a known duration make one in the first tick": {
			func(v *openwhiskRules) { v.available, v.stale = 1000, 900 },
			ruleResult{create: 1, why: ReasonFirst},
		},
		"4: not without calls": {
			func(v *openwhiskRules) {},
			ruleResult{why: ReasonNoDemand},
		},
		"5: the start failed, and is tried with one": {
			func(v *openwhiskRules) { v.state, v.available = flushing, 70 },
			ruleResult{create: 1, why: ReasonRetry},
		},
		"5: even without calls": {
			func(v *openwhiskRules) { v.state = flushing },
			ruleResult{create: 1, why: ReasonRetry},
		},
		"5: not while one is on its way": {
			func(v *openwhiskRules) { v.state, v.inProgress, v.available, v.stale = flushing, 1, 70, 70 },
			ruleResult{why: ReasonNoDemand},
		},
		"6: duration unknown: fresh calls are left one tick": {
			func(v *openwhiskRules) { v.execution, v.inProgress, v.available = 0, 1, 70 },
			ruleResult{why: ReasonNoDemand},
		},
		"6: duration unknown: an instance for each stale call, less those on their way": {
			func(v *openwhiskRules) { v.execution, v.inProgress, v.available, v.stale = 0, 3, 20, 10 },
			ruleResult{create: 7, why: ReasonStale},
		},
		"6: instances that exist do not count": {
			func(v *openwhiskRules) { v.execution, v.existing, v.available, v.stale = 0, 30, 20, 10 },
			ruleResult{create: 10, why: ReasonStale},
		},
		"6: by the calls that an instance takes at a time": {
			func(v *openwhiskRules) {
				v.execution, v.concurrency, v.inProgress, v.available, v.stale = 0, 4, 1, 20, 10
			},
			ruleResult{create: 2, why: ReasonStale},
		},
		"6: enough are on their way": {
			func(v *openwhiskRules) { v.execution, v.inProgress, v.available, v.stale = 0, 10, 20, 10 },
			ruleResult{why: ReasonEnough},
		},
		"7: late calls, by what an instance runs in the time, less what is on its way": {
			func(v *openwhiskRules) { v.existing, v.inProgress, v.available, v.stale = 30, 2, 41, 41 },
			ruleResult{create: 7, why: ReasonStale}, // ceil(41/5) - 2
		},
		"7: never more for late calls than there are": {
			func(v *openwhiskRules) { v.execution, v.existing, v.available, v.stale = time.Second, 30, 4, 4 },
			ruleResult{create: 4, why: ReasonStale}, // min(40, 4)
		},
		"7: fresh calls that all instances cannot run": {
			func(v *openwhiskRules) { v.existing, v.inProgress, v.available = 2, 1, 31 },
			ruleResult{create: 4, why: ReasonOverload}, // ceil(31/5 - 3)
		},
		"7: fresh calls that are just as many as they can run": {
			func(v *openwhiskRules) { v.existing, v.available = 3, 15 },
			ruleResult{why: ReasonEnough},
		},
		"7: fresh calls that they can run": {
			func(v *openwhiskRules) { v.existing, v.available = 4, 19 },
			ruleResult{why: ReasonEnough},
		},
		"7: no more for fresh calls than would give each its own instance": {
			func(v *openwhiskRules) { v.execution, v.existing, v.available = time.Second, 3, 5 },
			ruleResult{create: 2, why: ReasonOverload}, // min(ceil(50 - 3), 5 - 3)
		},
		"7: as many instances as fresh calls are enough, however long they take": {
			func(v *openwhiskRules) { v.execution, v.existing, v.available = time.Second, 5, 5 },
			ruleResult{why: ReasonEnough},
		},
		"7: late and fresh are added": {
			func(v *openwhiskRules) { v.existing, v.inProgress, v.available, v.stale = 2, 1, 31+20, 20 },
			ruleResult{create: 4 + 3, why: ReasonOverload},
		},
		"7: more on their way than the late need count for the fresh": {
			func(v *openwhiskRules) { v.existing, v.inProgress, v.available, v.stale = 0, 3, 31+5, 5 },
			ruleResult{create: 4 - 2, why: ReasonOverload},
		},
		"7: so much so that nothing is created": {
			func(v *openwhiskRules) { v.existing, v.inProgress, v.available, v.stale = 0, 6, 40+5, 5 },
			ruleResult{why: ReasonEnough},
		},
		"7: by concurrency": {
			func(v *openwhiskRules) { v.concurrency, v.existing, v.available, v.stale = 2, 30, 41, 41 },
			ruleResult{create: 5, why: ReasonStale},
		},
		"7: an empty queue": {
			func(v *openwhiskRules) { v.existing = 3 },
			ruleResult{why: ReasonNoDemand},
		},
		"place: the namespace's room cuts, and throttles without refusing": {
			func(v *openwhiskRules) { v.existing, v.available, v.stale, v.room = 30, 41, 41, 4 },
			ruleResult{create: 4, why: ReasonNoRoom, throttle: throttleOn},
		},
		"place: just enough room": {
			func(v *openwhiskRules) { v.existing, v.available, v.stale, v.room = 30, 41, 41, 9 },
			ruleResult{create: 9, why: ReasonStale},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			v := asked(tc.ask)
			if got := v.decide(); got != tc.want {
				t.Errorf("%+v\nsays %+v\nwant %+v", v, got, tc.want)
			}
		})
	}
}

func TestOpenWhiskRulesNeverExceedTheRoom(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		available := rapid.IntRange(0, 500).Draw(t, "available")
		v := openwhiskRules{
			state:       rapid.SampledFrom([]queueState{running, namespaceThrottled, flushing}).Draw(t, "state"),
			initialized: rapid.Bool().Draw(t, "initialized"),
			existing:    rapid.IntRange(0, 60).Draw(t, "existing"), inProgress: rapid.IntRange(0, 60).Draw(t, "in progress"),
			available: available, stale: rapid.IntRange(0, available).Draw(t, "stale"),
			execution:  time.Duration(rapid.Int64Range(0, int64(time.Minute)).Draw(t, "execution")),
			staleAfter: 100 * time.Millisecond, concurrency: rapid.IntRange(0, 8).Draw(t, "concurrency"),
			room: rapid.IntRange(-50, 200).Draw(t, "room"),
		}
		got := v.decide()
		if got.create < 0 || got.create > max(0, v.room) {
			t.Fatalf("creates %d where there is room for %d", got.create, v.room)
		}
		if got.why == "" {
			t.Fatal("does not say why")
		}
	})
}
