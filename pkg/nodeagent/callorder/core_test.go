package callorder

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"
)

const ms = time.Millisecond

// node drives a core and writes down what it does: "+1" grants to instance 1, "v1 slice" and
// "^1 slice" move it to the low and the normal band, and "ask 1" has it ask again.
type node struct {
	t    *testing.T
	core *Core
	now  time.Duration
}

func newNode(t *testing.T, change func(*Params)) *node {
	t.Helper()
	p := DefaultParams(1)
	change(&p)
	core, err := New(p)
	if err != nil {
		t.Fatal(err)
	}
	n := &node{t: t, core: core}
	n.do("", ModeChanged{Busy: true})
	return n
}

// do lets an event happen and compares the effects.
func (n *node) do(want string, e Event) {
	n.t.Helper()
	var got []string
	for _, effect := range n.core.Step(n.now, e) {
		switch e := effect.(type) {
		case Grant:
			got = append(got, fmt.Sprintf("+%d", e.Instance))
		case SetBand:
			got = append(got, fmt.Sprintf("%s%d %s", map[bool]string{true: "v", false: "^"}[e.Low], e.Instance, e.Why))
		case AskAgain:
			got = append(got, fmt.Sprintf("ask %d", e.Instance))
		}
	}
	if s := strings.Join(got, ", "); s != want {
		n.t.Errorf("at %s, %T%+v: %q, want %q", n.now, e, e, s, want)
	}
}

func (n *node) join(ids ...InstanceID) {
	for _, id := range ids {
		n.do("", Joined{Instance: id, Namespace: "default", Function: fmt.Sprint("f", id)})
	}
}

// learn teaches the size of an instance's function by one call, on an idle node.
func (n *node) learn(id InstanceID, size time.Duration) {
	n.do(fmt.Sprint("+", id), Asked{Instance: id})
	n.do("", Ended{Instance: id, Usage: size})
	// Its processor time starts again with a new instance.
	n.do("", Left{Instance: id})
	n.join(id)
}

func TestOneCallAtATimeComputesOnACore(t *testing.T) {
	n := newNode(t, func(p *Params) { p.Order = FIFO })
	n.join(1, 2, 3)
	n.do("+1", Asked{Instance: 1})
	n.do("", Asked{Instance: 2})
	n.do("", Asked{Instance: 3, Waited: ms})
	n.do("+3", Ended{Instance: 1, Usage: 5 * ms})
	n.do("+2", Left{Instance: 3})
}

func TestACallThatGaveUpFreesItsPlace(t *testing.T) {
	n := newNode(t, func(p *Params) { p.Order = FIFO })
	n.join(1, 2, 3)
	n.do("+1", Asked{Instance: 1, Ask: 7})
	n.do("", GaveUp{Instance: 1, Ask: 6})
	n.do("", Asked{Instance: 2, Ask: 1})
	n.do("", Asked{Instance: 3, Ask: 1})
	n.do("", GaveUp{Instance: 2, Ask: 9})
	n.do("", GaveUp{Instance: 2, Ask: 1})
	n.do("+3", Ended{Instance: 1})
}

// Its grant may have been on its way when it gave up. It has not begun, so its ticket is free and nothing is learnt.
func TestACallThatGaveUpKeepsNoTicketThatItHasNotHeardOf(t *testing.T) {
	n := newNode(t, func(p *Params) { p.Order = FIFO })
	n.join(1, 2)
	n.do("+1", Asked{Instance: 1, Ask: 7})
	n.do("", Asked{Instance: 2, Ask: 1})
	n.do("+2", GaveUp{Instance: 1, Ask: 7})
	if mean, known := n.core.Mean("default", "f1"); known {
		t.Errorf("mean %s", mean)
	}
	// One that computes was a call, whatever is said.
	n.do("", GaveUp{Instance: 2, Ask: 1, Usage: 40 * ms})
	if mean, _ := n.core.Mean("default", "f2"); mean != 40*ms {
		t.Errorf("mean %s", mean)
	}
}

func TestAnAskEndsTheCallBeforeIt(t *testing.T) {
	n := newNode(t, func(p *Params) { p.Order = FIFO })
	n.join(1, 2)
	n.do("+1", Asked{Instance: 1})
	n.do("", Asked{Instance: 2})
	n.now = ms
	n.do("+2", Asked{Instance: 1, Usage: 30 * ms})
	if mean, known := n.core.Mean("default", "f1"); !known || mean != 30*ms {
		t.Errorf("mean %s, %t", mean, known)
	}
}

func TestNothingIsLearntFromACallThatWasRefused(t *testing.T) {
	n := newNode(t, func(p *Params) { p.Order = FIFO })
	n.join(1, 2)
	n.do("+1", Asked{Instance: 1})
	n.do("", Asked{Instance: 2})
	n.do("+2", Ended{Instance: 1, Refused: true})
	if mean, known := n.core.Mean("default", "f1"); known {
		t.Errorf("mean %s", mean)
	}
	// One that computes was a call, whatever is said.
	n.do("", Ended{Instance: 2, Usage: 40 * ms, Refused: true})
	if mean, _ := n.core.Mean("default", "f2"); mean != 40*ms {
		t.Errorf("mean %s", mean)
	}
}

func TestACalmNodeHoldsNothingBack(t *testing.T) {
	n := newNode(t, func(*Params) {})
	n.join(1, 2, 3)
	n.do("+1", Asked{Instance: 1})
	n.do("", Asked{Instance: 2})
	n.do("v1 slice, +2", Sampled{Instance: 1, Usage: 21 * ms})
	n.do("^1 calm", ModeChanged{Busy: false})
	n.do("+3", Asked{Instance: 3})
	n.do("", ModeChanged{Busy: true})
}

func TestTheShortestExpectedCallBeginsFirst(t *testing.T) {
	n := newNode(t, func(p *Params) { p.Order = SEPT; p.Preempt = false; p.Slice = Slice{Rule: SliceOff} })
	n.join(1, 2, 3, 4)
	n.learn(1, 100*ms)
	n.learn(2, 10*ms)
	n.learn(3, 1000*ms)
	n.do("+3", Asked{Instance: 3})
	n.do("", Asked{Instance: 1})
	n.do("", Asked{Instance: 2})
	n.do("", Asked{Instance: 4}) // unknown: size 0
	n.do("+4", Ended{Instance: 3, Usage: 1000 * ms})
	n.do("+2", Ended{Instance: 4, Usage: 5 * ms})
	n.do("+1", Ended{Instance: 2, Usage: 10 * ms})
}

// While no call of a function has ended, those that wait count as long as the longest has computed.
func TestACallThatHasNotEndedShowsHowLongItsFunctionIs(t *testing.T) {
	n := newNode(t, func(p *Params) { p.Aging, p.Preempt = 0, false })
	n.join(1, 2, 3)
	n.do("", Joined{Instance: 4, Namespace: "default", Function: "f1"})
	n.do("", Joined{Instance: 5, Namespace: "default", Function: "f1"})
	n.learn(3, 30*ms)
	n.do("+1", Asked{Instance: 1})
	n.do("", Asked{Instance: 4})
	n.do("", Asked{Instance: 5})
	n.do("", Asked{Instance: 3})
	// The other calls of the function counted as shorter than 30 ms, and do not any more.
	n.do("v1 slice, +3", Sampled{Instance: 1, Usage: 50 * ms})
	n.do("+4", Ended{Instance: 3, Usage: 30 * ms})
	// The next one has four times as long to show what it needs.
	n.do("", Sampled{Instance: 4, Usage: 190 * ms})
	n.do("v4 slice, +5", Sampled{Instance: 4, Usage: 201 * ms})
	if mean, known := n.core.Mean("default", "f1"); known || mean != 0 {
		t.Errorf("mean %s, %t, want none", mean, known)
	}
	// What a call needed that ended counts more.
	n.do("^4 ended", Ended{Instance: 4, Usage: 600 * ms})
	if mean, known := n.core.Mean("default", "f1"); !known || mean != 600*ms {
		t.Errorf("mean %s, %t, want 600ms", mean, known)
	}
}

// Of four tickets, three go by age. The fourth goes to the shortest, however old others are.
func TestOnlyAPartOfTheTicketsGoesByAge(t *testing.T) {
	n := newNode(t, func(p *Params) { p.Cores, p.Slice = 4, Slice{Rule: SliceOff} })
	n.join(1, 2, 3, 4, 5, 6, 7, 8, 9)
	for _, long := range []InstanceID{1, 2, 3, 4, 5} {
		n.learn(long, time.Second)
	}
	n.learn(6, 10*ms)
	n.learn(7, 10*ms)
	n.learn(8, 10*ms)
	n.learn(9, 10*ms)
	// Four short calls compute; five long ones have waited for long, and so come before other short ones.
	for _, short := range []InstanceID{6, 7, 8, 9} {
		n.do(fmt.Sprint("+", short), Asked{Instance: short})
	}
	for _, long := range []InstanceID{1, 2, 3, 4, 5} {
		n.do("", Asked{Instance: long})
	}
	n.now = time.Minute
	n.do("", Joined{Instance: 10, Namespace: "default", Function: "f6"})
	n.do("", Joined{Instance: 11, Namespace: "default", Function: "f6"})
	n.do("", Asked{Instance: 10})
	n.do("+1", Ended{Instance: 6, Usage: 10 * ms})
	n.do("+2", Ended{Instance: 7, Usage: 10 * ms})
	n.do("+3", Ended{Instance: 8, Usage: 10 * ms})
	n.do("+10", Ended{Instance: 9, Usage: 10 * ms})
	// Nothing shorter waits, so a long call has the fourth, and yields it: it does not have it by age.
	n.do("+4", Ended{Instance: 10, Usage: 10 * ms})
	n.do("v4 preempted, +11", Asked{Instance: 11})
	n.do("^4 ticket", Ended{Instance: 11, Usage: 10 * ms})
}

// Cores that calls beyond their slice or latency-critical instances have are none of those tickets.
func TestThePartThatGoesByAgeIsOneOfTheTicketsThatThereAre(t *testing.T) {
	for name, take := range map[string]func(*node){
		"one call is beyond its slice": func(n *node) {
			n.join(20)
			n.do("+20", Asked{Instance: 20})
			n.do("v20 slice, ^20 idle-core", Sampled{Instance: 20, Usage: time.Second})
		},
		"one core is occupied": func(n *node) { n.do("", Occupied{Cores: 1}) },
	} {
		n := newNode(t, func(p *Params) { *p = DefaultParams(8) })
		for id := InstanceID(1); id <= 16; id++ {
			n.join(id)
			n.learn(id, map[bool]time.Duration{true: time.Second, false: 10 * ms}[id <= 8])
		}
		take(n)
		for short := InstanceID(9); short <= 15; short++ {
			n.do(fmt.Sprint("+", short), Asked{Instance: short})
		}
		for long := InstanceID(1); long <= 8; long++ {
			n.do("", Asked{Instance: long})
		}
		n.now = 2 * time.Minute
		n.do("", Asked{Instance: 16})
		for long := InstanceID(1); long <= 6; long++ {
			n.do(fmt.Sprint("+", long), Ended{Instance: 8 + long, Usage: 10 * ms})
		}
		n.do("+16", Ended{Instance: 15, Usage: 10 * ms})
		if t.Failed() {
			t.Fatalf("while %s", name)
		}
	}
}

// Measured times are never quite equal. Of two calls that are about as long the older one goes first,
// and a short one takes its ticket all the same.
func TestACallThatIsHardlyLongerHasItsTicketNotByAge(t *testing.T) {
	n := newNode(t, func(p *Params) { p.Slice = Slice{Rule: SliceOff} })
	n.join(1, 2, 3, 4)
	n.learn(1, 235*ms)
	n.learn(2, 234*ms)
	n.learn(3, 5*ms)
	n.do("+4", Asked{Instance: 4})
	n.do("", Asked{Instance: 1})
	n.now = time.Second
	n.do("", Asked{Instance: 2})
	n.do("+1", Ended{Instance: 4, Usage: 5 * ms})
	n.do("v1 preempted, +3", Asked{Instance: 3})
	n.do("^1 ticket", Ended{Instance: 3, Usage: 5 * ms})
}

func TestFairChoiceCountsTheCallsOfAMinute(t *testing.T) {
	n := newNode(t, func(p *Params) { p.Order = FairChoice; p.Preempt = false; p.Slice = Slice{Rule: SliceOff} })
	n.join(1, 2, 3)
	for range 3 {
		n.learn(1, 10*ms)
	}
	n.learn(2, 20*ms)
	n.do("+3", Asked{Instance: 3})
	n.do("", Asked{Instance: 1})                // 3 calls of 10 ms
	n.do("", Asked{Instance: 2})                // 1 call of 20 ms
	n.do("+2", Ended{Instance: 3, Usage: ms})   // so 2 goes first,
	n.do("+1", Ended{Instance: 2, Usage: 1000}) // then 1
	n.do("", Ended{Instance: 1, Usage: 10 * ms})
	n.now += 61 * time.Second
	n.do("+3", Asked{Instance: 3, Usage: ms})
	n.do("", Asked{Instance: 2, Usage: 1000})
	n.do("", Asked{Instance: 1, Usage: 10 * ms})
	n.do("+1", Ended{Instance: 3, Usage: ms}) // a minute later both count 0; 1 is the lower id
}

func TestRECTPrefersFunctionsThatWereNotCalledOfLate(t *testing.T) {
	n := newNode(t, func(p *Params) { p.Order = RECT; p.Preempt = false; p.Slice = Slice{Rule: SliceOff} })
	n.join(1, 2, 3, 4)
	n.now = time.Second
	n.learn(1, 100*ms)
	n.now = 2 * time.Second
	n.learn(2, 10*ms)
	n.now = 3 * time.Second
	n.do("+3", Asked{Instance: 3})
	n.do("", Asked{Instance: 2})
	n.do("", Asked{Instance: 1})
	n.do("", Asked{Instance: 4}) // its function's first call
	n.do("+4", Ended{Instance: 3})
	n.do("+1", Ended{Instance: 4})
	n.do("+2", Ended{Instance: 1})
}

func TestACallThatOutlivesItsSliceYields(t *testing.T) {
	n := newNode(t, func(p *Params) { p.Order = FIFO; p.Slice = Slice{SliceFixed, 10 * ms}; p.Preempt = false })
	n.join(1, 2)
	n.do("+1", Asked{Instance: 1})
	n.do("", Sampled{Instance: 1, Usage: 9 * ms})
	n.do("", Asked{Instance: 2})
	n.do("v1 slice, +2", Sampled{Instance: 1, Usage: 11 * ms})
	n.do("^1 idle-core", Ended{Instance: 2, Usage: 5 * ms})
	n.do("+2, v1 slice", Asked{Instance: 2, Usage: 5 * ms})
	n.do("^1 ended", Ended{Instance: 1, Usage: 12 * ms})
	if mean, _ := n.core.Mean("default", "f1"); mean != 12*ms {
		t.Errorf("mean %s", mean)
	}
}

// On one core no core is theirs, and calls that wait come without end.
func TestACallThatOutlivedItsSliceComputesOnceItIsOld(t *testing.T) {
	for age, want := range map[time.Duration]string{30 * time.Second: "+3, ^1 idle-core", 0: "+3"} {
		n := newNode(t, func(p *Params) {
			p.Order, p.Slice, p.Preempt, p.OutlivedAge = FIFO, Slice{SliceFixed, 10 * ms}, false, age
		})
		n.join(1, 2, 3, 4)
		n.do("+1", Asked{Instance: 1})
		n.do("", Asked{Instance: 2})
		n.do("v1 slice, +2", Sampled{Instance: 1, Usage: 11 * ms})
		n.now = 29 * time.Second
		n.do("", Asked{Instance: 3})
		n.now = 30 * time.Second
		n.do(want, Ended{Instance: 2, Usage: 5 * ms})
		n.do("", Asked{Instance: 2})
		n.do("", Asked{Instance: 4})
		n.now = 31 * time.Second
		n.do("+2", Ended{Instance: 3, Usage: 5 * ms}) // it stays where it is
		if age > 0 {
			n.do("", Ended{Instance: 1, Usage: 20 * ms})
		}
	}
}

// One of two cores is for calls that have outlived their slice, whatever waits.
func TestCallsThatOutlivedTheirSliceKeepSomeCores(t *testing.T) {
	n := newNode(t, func(p *Params) {
		p.Cores, p.Outlived, p.Order, p.Slice, p.Preempt = 2, 1, FIFO, Slice{SliceFixed, 10 * ms}, false
	})
	n.join(1, 2, 3)
	n.do("+1", Asked{Instance: 1})
	n.do("+2", Asked{Instance: 2})
	n.do("", Asked{Instance: 3})
	n.do("v1 slice, ^1 idle-core", Sampled{Instance: 1, Usage: 11 * ms})
	n.do("v2 slice, +3", Sampled{Instance: 2, Usage: 11 * ms})
	n.do("^2 idle-core", Ended{Instance: 3, Usage: 5 * ms})
	n.do("+3, v2 slice", Asked{Instance: 3, Usage: 5 * ms})
	n.do("^2 idle-core", Ended{Instance: 1, Usage: 30 * ms})
}

// A core that is for calls beyond their slice is not kept for one that sleeps.
func TestACallBeyondItsSliceThatSleepsTakesNoCore(t *testing.T) {
	n := newNode(t, func(p *Params) { *p = DefaultParams(8) })
	n.join(1, 2, 3, 4, 5, 6, 7, 8, 9)
	n.do("+1", Asked{Instance: 1})
	n.do("v1 slice, ^1 idle-core", Sampled{Instance: 1, Usage: 21 * ms})
	for range 3 {
		n.now += 5 * ms
		n.do("", Sampled{Instance: 1, Usage: 21 * ms})
	}
	for id := InstanceID(2); id <= 9; id++ {
		n.do(fmt.Sprint("+", id), Asked{Instance: id})
	}
	if got := n.core.Counts(); got != (Counts{Holding: 8, Blocked: 1}) {
		t.Errorf("%+v, want a blocked call beside eight others that hold the tickets", got)
	}
	// It is beyond its slice still when it computes again, and gets no ticket for that.
	n.do("", Sampled{Instance: 1, Usage: 22 * ms})
	if got := n.core.Counts(); got.Demoted != 1 || got.Holding != 8 {
		t.Errorf("%+v, want one call beyond its slice", got)
	}
	n.do("", Ended{Instance: 1, Usage: 23 * ms})
}

// On one core an old call that sleeps leaves its place to another old one, and has it again once it computes.
func TestAnOldCallBeyondItsSliceThatSleepsMakesRoomForAnother(t *testing.T) {
	n := newNode(t, func(p *Params) { p.Order, p.Slice, p.Preempt = FIFO, Slice{SliceFixed, 10 * ms}, false })
	n.join(1, 2, 3)
	n.do("+1", Asked{Instance: 1})
	n.now = ms
	n.do("", Asked{Instance: 2})
	n.do("", Asked{Instance: 3})
	n.do("v1 slice, +2", Sampled{Instance: 1, Usage: 11 * ms})
	n.do("v2 slice, +3", Sampled{Instance: 2, Usage: 11 * ms})
	n.now = 31 * time.Second
	n.do("^1 idle-core", Sampled{Instance: 3, Usage: ms})
	n.do("", Sampled{Instance: 1, Usage: 11 * ms})
	n.do("^2 idle-core", Sampled{Instance: 1, Usage: 11 * ms})
	n.do("v2 slice", Sampled{Instance: 1, Usage: 12 * ms})
	n.do("^2 idle-core", Ended{Instance: 1, Usage: 12 * ms})
}

func TestIdleCoresGoToTheOldestCallBeyondItsSlice(t *testing.T) {
	n := newNode(t, func(p *Params) { p.Order = FIFO; p.Slice = Slice{SliceFixed, 10 * ms}; p.Preempt = false })
	n.join(1, 2, 3)
	n.do("+1", Asked{Instance: 1})
	n.now = ms
	n.do("", Asked{Instance: 2})
	n.do("", Asked{Instance: 3})
	n.do("v1 slice, +2", Sampled{Instance: 1, Usage: 15 * ms})
	n.do("v2 slice, +3", Sampled{Instance: 2, Usage: 11 * ms})
	n.do("^1 idle-core", Ended{Instance: 3, Usage: 5 * ms}) // though 2 has used less
}

func TestAMuchShorterCallTakesTheTicket(t *testing.T) {
	n := newNode(t, func(p *Params) { p.Slice = Slice{Rule: SliceOff} })
	n.join(1, 2, 3)
	n.learn(1, 100*ms)
	n.learn(2, 10*ms)
	n.learn(3, 60*ms)
	n.do("+1", Asked{Instance: 1})
	n.do("", Asked{Instance: 3}) // 60 ms twice is more than 100
	n.do("v1 preempted, +2", Asked{Instance: 2})
	n.do("+3", Ended{Instance: 2, Usage: 10 * ms})
	n.do("^1 ticket", Ended{Instance: 3, Usage: 60 * ms})
	n.do("", Sampled{Instance: 1, Usage: 85 * ms})
	n.do("", Asked{Instance: 2, Usage: 10 * ms}) // 15 ms are left of 1: not twice 10
	n.do("+2", Ended{Instance: 1, Usage: 100 * ms})
}

func TestABlockedCallGivesItsTicketBack(t *testing.T) {
	n := newNode(t, func(p *Params) { p.Order = FIFO; p.Slice = Slice{Rule: SliceOff} })
	n.join(1, 2)
	n.do("+1", Asked{Instance: 1})
	n.do("", Asked{Instance: 2})
	n.do("", Sampled{Instance: 1, Usage: 5 * ms})
	n.do("", Sampled{Instance: 1, Usage: 5 * ms})
	n.do("+2", Sampled{Instance: 1, Usage: 5 * ms})
	n.do("v1 preempted", Sampled{Instance: 1, Usage: 6 * ms})
	n.do("^1 ticket", Ended{Instance: 2, Usage: 5 * ms})
}

func TestACallThatSleepsForLongIsSampledSeldom(t *testing.T) {
	n := newNode(t, func(p *Params) { p.BlockedAfter = 2 })
	n.join(1, 2)
	n.do("+1", Asked{Instance: 1})
	usage := time.Duration(0)
	// sample passes some ticks, and says in how many of them the call was sampled.
	sample := func(ticks int, grows time.Duration) (samples int) {
		for range ticks {
			n.now += 5 * ms
			usage += grows
			for _, id := range n.core.AppendDue(nil) {
				if id == 1 {
					samples++
					n.core.Step(n.now, Sampled{Instance: 1, Usage: usage})
				}
			}
		}
		return samples
	}
	if got := sample(20, 0); got != 20 {
		t.Errorf("in 100 ms it was sampled %d times", got)
	}
	sample(20, 0)
	if got := sample(80, 0); got != 10 {
		t.Errorf("asleep, it was sampled %d times in 80 ticks", got)
	}
	sample(80, stillness/2) // the agent in its pod
	if got := n.core.Counts(); got.Blocked != 1 {
		t.Errorf("for what an agent uses, the calls are %+v", got)
	}
	n.do("+2", Asked{Instance: 2})
	sample(8, ms)
	if got := n.core.Counts(); got.Preempted != 1 {
		t.Errorf("once it computes, the calls are %+v", got)
	}
}

func TestUnderOverloadCallsBeginInTheLowBand(t *testing.T) {
	n := newNode(t, func(p *Params) {
		p.Order, p.Slice, p.Bypass, p.Preempt = FIFO, Slice{SliceFixed, 10 * ms}, 3, false
	})
	n.join(1, 2, 3)
	n.do("+1", Asked{Instance: 1})
	n.do("", Asked{Instance: 2})
	n.now = 20 * ms
	n.do("", Asked{Instance: 3})
	n.now = 31 * ms
	n.do("v2 overload, +2, +3", Ended{Instance: 1, Usage: 9 * ms})
}

func TestCallsThatRanOnACalmNodeKeepRunning(t *testing.T) {
	n := newNode(t, func(*Params) {})
	n.join(1, 2)
	n.do("", Running{Instance: 1, For: time.Second, Usage: 10 * ms})
	n.do("v2 preempted", Running{Instance: 2, For: time.Second, Usage: 10 * ms})
	n.do("^2 ticket", Ended{Instance: 1, Usage: 20 * ms})
	n.do("", Asked{Instance: 1, Usage: 20 * ms})
	n.do("+1", Left{Instance: 2})
}

// Without preemption, calls that ran already keep running: those that agents speak of when the node becomes busy.
func TestOnlyCallsFromBeforeTheNodeWasBusyRunBeyondTheTickets(t *testing.T) {
	n := newNode(t, func(p *Params) { p.Order, p.Preempt = SEPT, false })
	n.join(1, 2, 3)
	n.do("+1", Asked{Instance: 1})
	n.now = 100 * ms
	n.do("", Running{Instance: 2})
	n.now = 2 * time.Second
	n.do("v3 preempted", Running{Instance: 3})
	if got := n.core.Counts(); got != (Counts{Holding: 2, Preempted: 1}) {
		t.Errorf("%+v, want two calls with tickets", got)
	}
	// The node agent has restarted, and the instance looked for it for a while.
	n.join(4)
	n.do("", Running{Instance: 4})
	// One that comes again says so to have its call run.
	again := Joined{Instance: 5, Name: "p", Namespace: "default", Function: "f5"}
	n.do("", again)
	n.do("", Left{Instance: 5})
	n.do("", again)
	n.do("v5 preempted", Running{Instance: 5})
}

func TestNamespacesAboveTheirShareGoBehindTheOthers(t *testing.T) {
	n := newNode(t, func(p *Params) { p.Order = SEPT; p.Preempt = false; p.Slice = Slice{Rule: SliceOff} })
	n.do("", Joined{Instance: 1, Namespace: "greedy", Function: "a"})
	n.do("", Joined{Instance: 2, Namespace: "greedy", Function: "b"})
	n.do("", Joined{Instance: 3, Namespace: "modest", Function: "c"})
	n.do("+3", Asked{Instance: 3})
	n.do("", Ended{Instance: 3, Usage: 200 * ms})
	n.do("+1", Asked{Instance: 1})
	n.do("", Asked{Instance: 2})
	n.do("", Asked{Instance: 3, Usage: 200 * ms})
	n.do("+3", Ended{Instance: 1, Usage: 1000 * ms}) // 200 ms expected, but greedy had 1 s
	n.do("+2", Ended{Instance: 3, Usage: 400 * ms})
}

// Who has more calls than another tenant is not behind that one's as long as both have room on the node.
func TestNamespacesAreAboveTheirShareOnlyIfTheyHaveMoreThanTheirPartOfTheNode(t *testing.T) {
	for _, tt := range []struct {
		name        string
		cores       int
		busy        time.Duration
		much, first string
	}{
		{"a third of the core", 1, 10 * time.Second, "2s", "+1"},
		{"more than a third of the core", 1, 10 * time.Second, "3s", "+2"},
		{"more than a third of a time that is short", 1, time.Second, "0.6s", "+2"},
		{"a third of a node of two cores", 2, 10 * time.Second, "4s", "+1"},
	} {
		n := newNode(t, func(p *Params) { p.Order, p.Cores, p.Outlived = FIFO, tt.cores, 0 })
		n.do("", Joined{Instance: 1, Namespace: "much", Function: "f"})
		n.do("", Joined{Instance: 2, Namespace: "little", Function: "f"})
		much, err := time.ParseDuration(tt.much)
		if err != nil {
			t.Fatal(err)
		}
		n.now += tt.busy
		n.do("+1", Asked{Instance: 1})
		n.do("", Ended{Instance: 1, Usage: much})
		for i := range tt.cores {
			id := InstanceID(10 + i)
			n.do("", Joined{Instance: id, Namespace: "third", Function: fmt.Sprint(id)})
			n.do(fmt.Sprint("+", id), Asked{Instance: id})
		}
		n.do("", Asked{Instance: 1, Usage: much})
		n.do("", Asked{Instance: 2})
		n.do(tt.first, Left{Instance: 10})
	}
}

func TestSFSFindsItsSliceFromArrivals(t *testing.T) {
	n := newNode(t, func(p *Params) { p.Cores = 4; p.Slice = Slice{Rule: SliceSFS} })
	n.join(1)
	for range 101 {
		n.now += 10 * ms
		n.do("+1", Asked{Instance: 1})
	}
	if s := n.core.slice(n.core.instances[1]); s != 40*ms {
		t.Errorf("slice %s, want the mean of 10ms times 4 cores", s)
	}
}

func TestTheP95OfTheLastCallsIsTheSlice(t *testing.T) {
	n := newNode(t, func(p *Params) { p.Slice = Slice{Rule: SliceP95} })
	n.join(1)
	usage := time.Duration(0)
	for k := range 100 {
		n.do("+1", Asked{Instance: 1, Usage: usage})
		usage += time.Duration(k+1) * ms
		n.do("", Sampled{Instance: 1, Usage: usage})
		n.do("", Ended{Instance: 1, Usage: usage})
	}
	if s := n.core.slice(n.core.instances[1]); s != 95*ms {
		t.Errorf("slice %s, want 95ms", s)
	}
}

func TestMeansOfFunctionsLongUnusedAreForgotten(t *testing.T) {
	n := newNode(t, func(p *Params) { p.MaxFunctions = 3 })
	n.join(1, 2, 3)
	n.do("", Left{Instance: 2})
	n.now = ms
	n.do("", Left{Instance: 1})
	n.join(4)
	if _, left := n.core.functions[functionName{"default", "f2"}]; left || len(n.core.functions) != 3 {
		t.Errorf("functions: %v", n.core.functions)
	}
	n.join(1)
	if got := n.core.inOrder(); !slices.ContainsFunc(got, func(i *instance) bool { return i.id == 1 }) {
		t.Error("instance 1 has not joined")
	}
}

func TestUnknownInstancesChangeNothing(t *testing.T) {
	n := newNode(t, func(*Params) {})
	for _, e := range []Event{Asked{Instance: 9}, Ended{Instance: 9}, GaveUp{Instance: 9}, Left{Instance: 9}, Sampled{Instance: 9}, Running{Instance: 9}} {
		n.do("", e)
	}
	if n.core.Counts() != (Counts{}) {
		t.Errorf("%+v", n.core.Counts())
	}
}

// Calls that wait for calls that they made themselves give their tickets back, so that a chain on
// one core ends, in whatever order.
func TestAChainOfNestedCallsEnds(t *testing.T) {
	for _, order := range Orders() {
		n := newNode(t, func(p *Params) { p.Order = order })
		const depth = 16
		usage, granted := map[InstanceID]time.Duration{}, map[InstanceID]bool{}
		step := func(e Event) {
			for _, effect := range n.core.Step(n.now, e) {
				if g, is := effect.(Grant); is {
					granted[g.Instance] = true
				}
			}
		}
		open := InstanceID(0) // calls 1 to open have been made
		call := func() {
			open++
			n.join(open)
			step(Asked{Instance: open, Ask: 1})
		}
		call()
		for looks, returning := 0, false; open > 0; looks++ {
			if looks > 1000 {
				t.Fatalf("%s: %d calls are open, and nothing happens", order, open)
			}
			n.now += 5 * ms
			if granted[open] { // the last one computes, and the others wait for it
				usage[open] += ms
			}
			for id := InstanceID(1); id <= open; id++ {
				step(Sampled{Instance: id, Usage: usage[id]})
			}
			switch {
			case !granted[open]:
			case open < depth && !returning:
				call()
			default:
				returning = true
				step(Ended{Instance: open, Usage: usage[open]})
				open--
			}
		}
		if counts := n.core.Counts(); counts.GaveBack < depth-1 && order != None {
			t.Errorf("%s: %d tickets were given back", order, counts.GaveBack)
		}
	}
}

func TestArrivalsOfFunctionsThatAreGoneTakeLittleMemory(t *testing.T) {
	for _, order := range Orders() {
		t.Run(string(order), func(t *testing.T) {
			n := newNode(t, func(p *Params) { p.Order = order })
			n.join(1)
			for ask := range uint64(100_000) {
				n.now += recently / 200_000
				n.core.Step(n.now, Asked{Instance: 1, Ask: ask})
			}
			f := n.core.functions[functionName{"default", "f1"}]
			if order != FairChoice && len(f.recent) > 0 {
				t.Errorf("%d arrivals are kept, which only Fair-Choice counts", len(f.recent))
			}
			n.core.Step(n.now, Left{Instance: 1})
			if kept := cap(f.recent); kept > 2*goneArrivals {
				t.Errorf("room for %d arrivals is kept of a function without instances", kept)
			}
		})
	}
}
