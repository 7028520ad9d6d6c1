package autoscaler

import (
	"testing"
	"time"
)

// TestHorizonLearnsNoWaitForACore is TestHorizonLearnsForHowLongACallHoldsAnInstance, with ten
// more instances that all wait for cores.
func TestHorizonLearnsNoWaitForACore(t *testing.T) {
	for name, wait := range map[string]func(s *Snapshot){
		"that instances tell of": func(s *Snapshot) { s.AwaitingCore = 10 },
		"that calls tell of":     func(s *Snapshot) { s.CoreWaited = time.Second },
	} {
		s := Snapshot{Created: 20, Busy: 20, MeanExecution: 2 * time.Millisecond, MeanStart: time.Second, Room: -1}
		s, _ = follow(s, 300, func(_ int, s *Snapshot) {
			s.Arrived, s.Departed = s.Arrived+50, s.Departed+50
			wait(s)
		})
		if hold := stateOf[horizonState](s).Rates.Hold; hold < .017 || hold > .02 {
			t.Errorf("waits %s: a call holds an instance for %v s, want nearly 20 ms", name, hold)
		}
	}
}

func TestInstancesThatWouldWaitForCoresAreNotCreated(t *testing.T) {
	wants := Decision{Create: 5, Why: ReasonBacklog}
	for name, tc := range map[string]struct {
		s    Snapshot
		l    Limits
		want int
		why  Reason
	}{
		"half of the busy ones wait":   {Snapshot{Created: 5, Busy: 4, AwaitingCore: 2, NodesBusy: true}, Limits{}, 0, ReasonNoCores},
		"few of the busy ones wait":    {Snapshot{Created: 5, Busy: 5, AwaitingCore: 1, NodesBusy: true}, Limits{}, 3, ReasonNoCores},
		"some of those will not":       {Snapshot{Created: 5, Busy: 5, AwaitingCore: 1, Creating: 2, NodesBusy: true}, Limits{}, 1, ReasonNoCores},
		"very few of many wait":        {Snapshot{Created: 20, Busy: 20, AwaitingCore: 1, NodesBusy: true}, Limits{}, 5, ReasonBacklog},
		"calls waited that have ended": {Snapshot{Created: 8, Busy: 8, CoreWaited: 400 * time.Millisecond, Elapsed: 100 * time.Millisecond, NodesBusy: true}, Limits{}, 0, ReasonNoCores},
		"all wait for other functions": {Snapshot{Created: 1, Busy: 1, AwaitingCore: 1, NodesBusy: true}, Limits{}, 1, ReasonNoCores},
		"a node has cores to spare":    {Snapshot{Created: 5, Busy: 4, AwaitingCore: 4}, Limits{}, 5, ReasonBacklog},
		"none waits":                   {Snapshot{Created: 5, Busy: 5, NodesBusy: true}, Limits{}, 5, ReasonBacklog},
		"one was lost":                 {Snapshot{Created: 5, Busy: 4, AwaitingCore: 4, NodesBusy: true, Lost: 1}, Limits{}, 1, ReasonReplace},
		"there are too few":            {Snapshot{Created: 1, Busy: 1, AwaitingCore: 1, NodesBusy: true}, Limits{Min: 3}, 2, ReasonMin},
	} {
		if d := Bound(wants, tc.s, tc.l); d.Create != tc.want || d.Why != tc.why {
			t.Errorf("%s: %d for %s, want %d for %s", name, d.Create, d.Why, tc.want, tc.why)
		}
	}
}

// fullNode is a function on one node with too few cores for its calls. Each instance holds a call,
// and the calls that came first compute.
type fullNode struct {
	cores            int
	execution, start time.Duration
	tells            bool // agents and schedulers say what waits for cores
	now              time.Duration
	arrived, ended   uint64
	starting         []time.Duration // when they are ready
	holding          []*heldCall
	instances        int
	waited           time.Duration
	waiting          int
}

type heldCall struct {
	since    time.Duration
	computed time.Duration
	begun    bool
}

const millisecond = time.Millisecond

// run lets a millisecond pass.
func (n *fullNode) run() {
	n.now += millisecond
	for len(n.starting) > 0 && n.starting[0] <= n.now {
		n.starting = n.starting[1:]
		n.instances++
	}
	for n.waiting > 0 && len(n.holding) < n.instances {
		n.waiting--
		n.holding = append(n.holding, &heldCall{since: n.now})
	}
	kept := n.holding[:0]
	for i, c := range n.holding {
		if i >= n.cores {
			kept = append(kept, c)
			continue
		}
		if !c.begun {
			c.begun = true
			n.waited += min(n.now-c.since, 50*millisecond)
		}
		if c.computed += millisecond; c.computed < n.execution {
			kept = append(kept, c)
		} else {
			n.ended++
		}
	}
	n.holding = kept
}

// awaiting is how many instances have said that their calls wait.
func (n *fullNode) awaiting() (waiting int) {
	for _, c := range n.holding {
		if !c.begun && n.now-c.since >= 50*millisecond {
			waiting++
		}
	}
	return waiting
}

func (n *fullNode) snapshot(state State) Snapshot {
	s := Snapshot{
		Arrived: n.arrived, Departed: n.arrived - uint64(n.waiting), Created: n.instances, Busy: len(n.holding), Creating: len(n.starting),
		Room: -1, MeanStart: n.start, Elapsed: stale.Tick, State: state,
	}
	if n.ended > 0 {
		s.MeanExecution = n.execution
	}
	if n.waiting > 0 {
		s.OldestWait = stale.Tick
	}
	if n.tells {
		s.NodesBusy, s.AwaitingCore, s.CoreWaited = len(n.holding) > n.cores, n.awaiting(), n.waited
	}
	n.waited = 0
	return s
}

// rush lets calls come for 5 s, more than the cores can do, and returns how many instances the
// decider has created until a minute is over, and how many calls have ended.
func (n *fullNode) rush(decide Decider, every time.Duration) (created int, ended uint64) {
	var state State
	for n.now < time.Minute {
		n.run()
		if n.now%every == 0 && n.now <= 5*time.Second {
			n.arrived++
			n.waiting++
		}
		if n.now%stale.Tick != 0 {
			continue
		}
		s := n.snapshot(state)
		d := Bound(decide(s, stale), s, Limits{})
		state = d.State
		for range d.Create {
			n.starting = append(n.starting, n.now+n.start)
		}
		n.starting = n.starting[:len(n.starting)-d.Cancel]
		created += d.Create - d.Cancel
	}
	return created, n.ended
}

// A rush on a node with too few cores creates as many instances as with enough: those that were
// ordered before any call waited for a core.
func TestARushCreatesNoInstancesForCoresThatAreNotThere(t *testing.T) {
	for _, tc := range []struct {
		name             string
		cores            int
		execution, every time.Duration
	}{
		{"calls of 50 ms", 2, 50 * millisecond, 5 * millisecond},
		{"calls of 500 ms", 2, 500 * millisecond, 50 * millisecond},
		{"on eight cores", 8, 200 * millisecond, 5 * millisecond},
	} {
		run := func(cores int, tells bool) (int, uint64) {
			n := fullNode{cores: cores, execution: tc.execution, start: 300 * millisecond, tells: tells}
			return n.rush(Horizon, tc.every)
		}
		enough, _ := run(1000, false)
		before, done := run(tc.cores, false)
		created, same := run(tc.cores, true)
		t.Logf("%s, %d cores: %d instances, %d if nobody says what waits for cores; with cores for all %d", tc.name, tc.cores, created, before, enough)
		if done != same {
			t.Errorf("%s: %d calls have ended, and %d with more instances", tc.name, same, done)
		}
		if created > enough || before < 2*enough {
			t.Errorf("%s: %d instances for %d cores, %d if nobody says what waits, %d with cores for all", tc.name, created, tc.cores, before, enough)
		}
	}
}
