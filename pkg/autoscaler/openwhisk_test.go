package autoscaler

import (
	"testing"
	"time"
)

var stale = Params{Tick: 100 * time.Millisecond, StaleAfter: 100 * time.Millisecond}

func TestOpenWhiskMapsSnapshots(t *testing.T) {
	known := 20 * time.Millisecond
	cases := map[string]struct {
		s    Snapshot
		want Decision
	}{
		"nothing waits: not even a first instance": {
			Snapshot{Room: -1},
			Decision{Why: ReasonNoDemand, State: openwhiskState{}},
		},
		"a first call": {
			Snapshot{Arrived: 1, Room: -1},
			Decision{Create: 1, Why: ReasonFirst, State: openwhiskState{Initialized: true}},
		},
		"an instance that exists was a first": {
			Snapshot{Arrived: 9, Departed: 9, Created: 1, Room: -1},
			Decision{Why: ReasonNoDemand, State: openwhiskState{Initialized: true}},
		},
		"a start that failed": {
			Snapshot{Arrived: 9, Failing: true, Room: -1, State: openwhiskState{Initialized: true}},
			Decision{Create: 1, Why: ReasonRetry, State: openwhiskState{Initialized: true}},
		},
		"and not beside another": {
			Snapshot{Arrived: 9, Stale: 9, Creating: 1, Failing: true, Room: -1},
			Decision{Why: ReasonNoDemand, State: openwhiskState{Initialized: true}},
		},
		"a start that failed beside an instance": {
			Snapshot{Arrived: 50, Stale: 50, Created: 1, MeanExecution: known, Failing: true, Room: -1},
			Decision{Create: 10, Why: ReasonStale, State: openwhiskState{Initialized: true}},
		},
		"an unknown duration and stale calls": {
			Snapshot{Arrived: 12, Stale: 5, Creating: 1, Room: -1},
			Decision{Create: 4, Why: ReasonStale, State: openwhiskState{Initialized: true}},
		},
		"room that nobody knows does not bound": {
			Snapshot{Arrived: 5000, Stale: 5000, Created: 1, MeanExecution: known, Room: -1},
			Decision{Create: 1000, Why: ReasonStale, State: openwhiskState{Initialized: true}},
		},
		"room that is known does, and throttles": {
			Snapshot{Arrived: 5000, Stale: 5000, Created: 1, MeanExecution: known, Room: 7},
			Decision{Create: 7, Why: ReasonNoRoom, State: openwhiskState{Initialized: true, Throttled: true}},
		},
		"no room at all": {
			Snapshot{Arrived: 3, Room: 0},
			Decision{Why: ReasonNoRoom, State: openwhiskState{Throttled: true}},
		},
		"still no room": {
			Snapshot{Arrived: 3, Room: 0, State: openwhiskState{Throttled: true}},
			Decision{Why: ReasonNoRoom, State: openwhiskState{Throttled: true}},
		},
		"room again costs one tick": {
			Snapshot{Arrived: 3, Room: 5, State: openwhiskState{Throttled: true}},
			Decision{Why: ReasonEnough, State: openwhiskState{}},
		},
		"a throttle lasts while nothing waits": {
			Snapshot{Arrived: 3, Departed: 3, Room: 5, State: openwhiskState{Throttled: true}},
			Decision{Why: ReasonNoDemand, State: openwhiskState{Throttled: true}},
		},
		"calls that an instance takes at a time": {
			Snapshot{Arrived: 100, Stale: 100, Created: 1, MeanExecution: known, Concurrency: 4, Room: -1},
			Decision{Create: 5, Why: ReasonStale, State: openwhiskState{Initialized: true}},
		},
		"a count of stale calls that is older than the queue": {
			Snapshot{Arrived: 2, Stale: 9, Created: 1, Room: -1},
			Decision{Create: 2, Why: ReasonStale, State: openwhiskState{Initialized: true}},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := OpenWhisk(tc.s, stale); got != tc.want {
				t.Errorf("got  %+v\nwant %+v", got, tc.want)
			}
		})
	}
}

func TestStaleAfterIsATickIfNotSet(t *testing.T) {
	s := Snapshot{Arrived: 50, Stale: 50, Created: 1, MeanExecution: 10 * time.Millisecond, Room: -1}
	if got := OpenWhisk(s, Params{Tick: 100 * time.Millisecond}); got.Create != 5 {
		t.Errorf("creates %d, want 5", got.Create)
	}
}
