package callorder

import (
	"testing"
	"time"
)

// joinTenants lets an instance of the victim and one of the attacker join.
func (n *node) joinTenants() (victim, attacker InstanceID) {
	n.do("", Joined{Instance: 1, Namespace: "shop", Function: "cart"})
	n.do("", Joined{Instance: 2, Namespace: "evil", Function: "hog"})
	return 1, 2
}

// learnTenants teaches sizes of 8 ms and of 200 ms.
func (n *node) learnTenants() (victim, attacker InstanceID) {
	victim, attacker = n.joinTenants()
	n.do("+1", Asked{Instance: victim})
	n.do("", Ended{Instance: victim, Usage: 8 * ms})
	n.do("+2", Asked{Instance: attacker})
	n.do("", Ended{Instance: attacker, Usage: 200 * ms})
	return victim, attacker
}

// What an agent says of how long its call has waited puts it before no call of another namespace.
func TestAClaimedWaitCountsWithinItsNamespaceOnly(t *testing.T) {
	for _, order := range []Order{FIFO, EECT, RECT, SERPT} {
		n := newNode(t, func(p *Params) { p.Order, p.Slice.Rule = order, SliceOff })
		victim, attacker := n.learnTenants()
		n.do("", Joined{Instance: 3, Namespace: "third", Function: "holds"})
		n.do("+3", Asked{Instance: 3, Usage: 0})
		n.now += ms
		n.do("", Asked{Instance: victim, Usage: 8 * ms})
		n.now += ms
		n.do("", Asked{Instance: attacker, Waited: time.Minute, Usage: 200 * ms})
		n.do("+1", Ended{Instance: 3, Usage: ms})
	}
}

// Nor does what it says of a call that runs already.
func TestACallThatIsSaidToRunWaitsBehindOthersThatCameBefore(t *testing.T) {
	for _, order := range []Order{FIFO, SERPT} {
		n := newNode(t, func(p *Params) { p.Order, p.Preempt, p.Slice.Rule = order, order == SERPT, SliceOff })
		victim, attacker := n.learnTenants()
		n.now = time.Hour
		n.do("", Joined{Instance: 3, Namespace: "third", Function: "holds"})
		n.do("+3", Asked{Instance: 3})
		n.do("", Asked{Instance: victim, Usage: 8 * ms})
		n.now += ms
		n.do("v2 preempted", Running{Instance: attacker, For: 24 * time.Hour, Usage: 200 * ms})
		n.do("+1", Ended{Instance: 3, Usage: ms})
		n.do("^2 ticket", Ended{Instance: victim, Usage: 16 * ms})
	}
}

// Nor does a claimed age bring a call beyond its slice before those of others.
func TestACallBeyondItsSliceIsAsOldAsTheNodeHasSeen(t *testing.T) {
	n := newNode(t, func(p *Params) { p.Order, p.Slice, p.Preempt = FIFO, Slice{SliceFixed, 10 * ms}, false })
	victim, attacker := n.joinTenants()
	n.do("", Joined{Instance: 3, Namespace: "third", Function: "holds"})
	n.do("+1", Asked{Instance: victim})
	n.now = 10 * time.Second
	n.do("", Asked{Instance: attacker, Waited: time.Minute})
	n.do("", Asked{Instance: 3})
	n.do("v1 slice, +2", Sampled{Instance: victim, Usage: 11 * ms})
	n.do("v2 slice, +3", Sampled{Instance: attacker, Usage: 11 * ms})
	n.now = 30 * time.Second
	n.do("^1 idle-core", Sampled{Instance: 3})
}

// Nor does it keep a ticket from one.
func TestATicketByAClaimedWaitIsNotKeptFromOthers(t *testing.T) {
	n := newNode(t, func(*Params) {})
	victim, attacker := n.learnTenants()
	n.do("", Joined{Instance: 3, Namespace: "evil", Function: "short"})
	n.do("+3", Asked{Instance: 3})
	n.do("", Joined{Instance: 4, Namespace: "evil", Function: "short"})
	n.do("", Asked{Instance: attacker, Waited: time.Minute, Usage: 200 * ms})
	n.do("", Asked{Instance: 4})
	n.do("+2", Ended{Instance: 3, Usage: ms}) // before the shorter one of its own namespace
	n.do("v2 preempted, +1", Asked{Instance: victim, Usage: 8 * ms})
}

// A call that hardly computes with its ticket, but never for long enough to be blocked, counts as long as it
// keeps it.
func TestAKeptTicketCountsAsUsed(t *testing.T) {
	n := newNode(t, func(p *Params) { p.Slice.Rule = SliceOff })
	victim, attacker := n.joinTenants()
	n.do("+1", Asked{Instance: victim})
	n.do("", Ended{Instance: victim, Usage: 8 * ms})
	n.do("+2", Asked{Instance: attacker})
	used := time.Duration(0)
	for range 12 {
		n.now += 5 * ms
		used += 150 * time.Microsecond
		n.do("", Sampled{Instance: attacker, Usage: used})
	}
	n.do("", Ended{Instance: attacker, Usage: used})
	if mean, _ := n.core.Mean("evil", "hog"); mean < 55*ms || mean > 60*ms {
		t.Errorf("a call that kept its ticket for 60 ms counts as %s", mean)
	}
	n.do("+2", Asked{Instance: attacker, Usage: used})
	n.do("v2 preempted, +1", Asked{Instance: victim, Usage: 8 * ms})
}

// So it loses its ticket by its slice, too, where calls take no tickets of others.
func TestAKeptTicketIsLostSoon(t *testing.T) {
	n := newNode(t, func(p *Params) { p.Order, p.Preempt = SEPT, false })
	victim, attacker := n.joinTenants()
	n.do("+2", Asked{Instance: attacker})
	n.do("", Asked{Instance: victim})
	used := time.Duration(0)
	for n.core.Counts().Holding == 1 && n.core.Counts().Waiting == 1 && n.now < time.Second {
		n.now += 5 * ms
		used += 150 * time.Microsecond
		n.core.Step(n.now, Sampled{Instance: attacker, Usage: used})
	}
	if n.now > 2*firstSlice {
		t.Errorf("a call has kept its ticket for %s by computing %s", n.now, used)
	}
}

// But who has a fifth of a core beside others that compute without tickets needs five times as long, and is not beyond
// its slice for that.
func TestACallThatHasTooLittleOfItsCoreKeepsItsTicket(t *testing.T) {
	n := newNode(t, func(*Params) {})
	victim, _ := n.learnTenants()
	n.do("+1", Asked{Instance: victim, Usage: 8 * ms})
	for used := 9 * ms; used <= 15*ms; used += ms {
		n.now += 5 * ms
		n.do("", Sampled{Instance: victim, Usage: used})
	}
	n.do("", Ended{Instance: victim, Usage: 16 * ms})
}

// A call that computes all the time, or sleeps and gives its ticket back, counts as what it has used.
func TestUsedAndBlockedTicketsCountAsTheyAre(t *testing.T) {
	n := newNode(t, func(p *Params) { p.Slice.Rule = SliceOff })
	victim, sleeper := n.joinTenants()
	n.do("+1", Asked{Instance: victim})
	for i := range 8 {
		n.now += 5 * ms
		n.do("", Sampled{Instance: victim, Usage: time.Duration(i+1) * 3 * ms})
	}
	n.do("", Ended{Instance: victim, Usage: 24 * ms})
	n.do("+2", Asked{Instance: sleeper})
	for range 8 {
		n.now += 5 * ms
		n.do("", Sampled{Instance: sleeper, Usage: ms})
	}
	n.do("", Ended{Instance: sleeper, Usage: ms})
	for _, want := range []struct {
		namespace, name string
		mean            time.Duration
	}{{"shop", "cart", 24 * ms}, {"evil", "hog", ms}} {
		if mean, _ := n.core.Mean(want.namespace, want.name); mean != want.mean {
			t.Errorf("%s counts as %s, want %s", want.name, mean, want.mean)
		}
	}
}

// Who has computed several times as much takes no ticket from a call of another namespace, however short its
// own are.
func TestWhoHasMuchMorePreemptsNobodyElse(t *testing.T) {
	n := newNode(t, func(*Params) {})
	victim, attacker := n.joinTenants()
	n.do("+1", Asked{Instance: victim})
	n.do("", Ended{Instance: victim, Usage: 50 * ms})
	n.do("", Joined{Instance: 3, Namespace: "evil", Function: "short"})
	n.do("+3", Asked{Instance: 3})
	n.do("", Ended{Instance: 3, Usage: ms})
	n.do("+1", Asked{Instance: victim, Usage: 50 * ms})
	n.do("v1 preempted, +3", Asked{Instance: 3, Usage: ms})
	n.do("^1 ticket", Ended{Instance: 3, Usage: 2 * ms})
	n.do("v1 preempted, +2", Asked{Instance: attacker}) // unknown, which is short
	n.do("^1 ticket", Ended{Instance: attacker, Usage: 300 * ms})
	n.do("", Asked{Instance: 3, Usage: 2 * ms})
}

// What is computed without a ticket counts for the share of a namespace, too.
func TestWhatIsComputedUnaskedCounts(t *testing.T) {
	n := newNode(t, func(p *Params) { p.Order = FIFO })
	victim, attacker := n.joinTenants()
	n.do("", Joined{Instance: 3, Namespace: "third", Function: "holds"})
	n.do("", Joined{Instance: 4, Namespace: "evil", Function: "starts", MustAsk: true})
	n.do("", Sampled{Instance: 4, Usage: 2 * time.Second})
	n.do("+1", Asked{Instance: victim})
	n.do("", Ended{Instance: victim, Usage: time.Second})
	n.do("+3", Asked{Instance: 3})
	n.do("", Asked{Instance: attacker})
	n.do("", Asked{Instance: victim, Usage: time.Second})
	n.do("+1", Ended{Instance: 3, Usage: ms})
}

// Tickets for calls that end at once are paid for, so that a flood of them does not go first for ever.
func TestAsksWithoutCallsArePaidFor(t *testing.T) {
	n := newNode(t, func(*Params) {})
	victim, _ := n.learnTenants()
	n.do("", Joined{Instance: 3, Namespace: "evil", Function: "flood"})
	n.do("", Joined{Instance: 4, Namespace: "evil", Function: "flood"})
	n.now += time.Minute // what was computed before is forgotten
	n.do("+3", Asked{Instance: 3})
	n.do("", Asked{Instance: 4})
	used, longest := 8*ms, time.Duration(0)
	for began := n.now; n.now-began < 20*time.Second; {
		asked := n.now
		n.core.Step(n.now, Asked{Instance: victim, Usage: used})
		for granted := false; !granted; n.now += 300 * time.Microsecond {
			for _, id := range []InstanceID{3, 4} {
				for _, e := range n.core.Step(n.now, Asked{Instance: id}) {
					g, is := e.(Grant)
					granted = granted || is && g.Instance == victim
				}
			}
		}
		longest = max(longest, n.now-asked)
		used += 8 * ms
		n.now += 8 * ms
		n.core.Step(n.now, Ended{Instance: victim, Usage: used})
		n.now += 20 * ms
	}
	if longest > 10*ms {
		t.Errorf("a call waited for %s beside asks without calls", longest)
	}
}

// The time in which another call has the ticket is nobody's waste.
func TestATicketIsNotKeptWhileAnotherHasIt(t *testing.T) {
	n := newNode(t, func(p *Params) { p.Slice.Rule = SliceOff })
	victim, long := n.learnTenants()
	n.do("+2", Asked{Instance: long, Usage: 200 * ms})
	used := 200 * ms
	for range 2 {
		n.now += 5 * ms
		used += 2 * ms
		n.do("", Sampled{Instance: long, Usage: used})
	}
	n.do("v2 preempted, +1", Asked{Instance: victim, Usage: 8 * ms})
	n.now += time.Second
	n.do("^2 ticket", Ended{Instance: victim, Usage: 16 * ms})
	n.now += 5 * ms
	used += 5 * ms
	n.do("", Sampled{Instance: long, Usage: used})
	n.do("", Ended{Instance: long, Usage: used})
	if mean, _ := n.core.Mean("evil", "hog"); mean > 200*ms {
		t.Errorf("a call that has used 9 ms counts as %s", 2*mean-200*ms)
	}
}

// Nor is it once that call is there again and hardly has its core, but for what it does not use then.
func TestAWaitForATicketIsNoPartOfWhatACallKeeps(t *testing.T) {
	n := newNode(t, func(p *Params) { p.Slice.Rule = SliceOff })
	victim, long := n.learnTenants()
	n.do("+2", Asked{Instance: long, Usage: 200 * ms})
	n.do("v2 preempted, +1", Asked{Instance: victim, Usage: 8 * ms})
	n.now += time.Second
	n.do("^2 ticket", Ended{Instance: victim, Usage: 16 * ms})
	used := 200 * ms
	for range 3 {
		n.now += 5 * ms
		used += 2 * ms
		n.do("", Sampled{Instance: long, Usage: used})
	}
	n.do("", Ended{Instance: long, Usage: used})
	if mean, _ := n.core.Mean("evil", "hog"); mean > 110*ms {
		t.Errorf("a call that has had its ticket for 15 ms counts as %s", 2*mean-200*ms)
	}
}

// What a call computes on a calm node is nobody's, nor is what it does not.
func TestACalmTimeIsNeitherComputedNorKept(t *testing.T) {
	for _, used := range []time.Duration{0, 30 * time.Second} {
		n := newNode(t, func(p *Params) { p.Slice.Rule = SliceOff })
		_, attacker := n.joinTenants()
		n.do("+2", Asked{Instance: attacker})
		n.do("", ModeChanged{Busy: false})
		n.now += time.Minute
		n.do("", ModeChanged{Busy: true})
		for range 4 {
			n.do("", Sampled{Instance: attacker, Usage: used})
			n.now += 5 * ms
			used += 2 * ms
		}
		if had := n.core.instances[attacker].namespace.spentBy(n.now); had > float64(time.Second) {
			t.Errorf("evil has had %.1f s", had/1e9)
		}
		n.do("", Ended{Instance: attacker, Usage: used})
		if mean, _ := n.core.Mean("evil", "hog"); mean > used+20*ms {
			t.Errorf("a call that has used %s counts as %s", used, mean)
		}
	}
	n := newNode(t, func(*Params) {})
	_, attacker := n.joinTenants()
	n.do("+2", Asked{Instance: attacker})
	n.do("", ModeChanged{Busy: false})
	i := n.core.instances[attacker]
	n.do("", Ended{Instance: attacker, Usage: 30 * time.Second})
	if had := i.namespace.spentBy(n.now); had > float64(time.Second) {
		t.Errorf("by a call that ended on a calm node, evil has had %.1f s", had/1e9)
	}
}

// Nobody is the first for ever because nobody knows its functions: they count as long as the others of their
// namespace, once that has had more than who waits.
func TestNewFunctionsCountAsTheOthersOfTheirNamespace(t *testing.T) {
	for _, known := range []bool{false, true} {
		n := newNode(t, func(*Params) {})
		victim, attacker := n.learnTenants()
		n.do("", Joined{Instance: 3, Namespace: "evil", Function: "another"})
		if known {
			n.do("+3", Asked{Instance: 3})
			n.do("", Ended{Instance: 3, Usage: ms})
		}
		n.do("+3", Asked{Instance: 3, Usage: ms})
		n.do(map[bool]string{false: "v3 preempted, +1"}[known], Asked{Instance: victim, Usage: 8 * ms})
		_ = attacker
	}
}

// A call that is taken for short keeps its ticket, unless it hardly uses that, and its namespace has had more.
func TestAKeptTicketIsTakenAway(t *testing.T) {
	for _, lost := range []time.Duration{0, 8 * ms} {
		n := newNode(t, func(p *Params) { p.Slice.Rule = SliceOff })
		victim, attacker := n.joinTenants()
		n.do("+1", Asked{Instance: victim})
		n.do("", Ended{Instance: victim, Usage: 8*ms - lost})
		n.do("+2", Asked{Instance: attacker})
		n.do("", Ended{Instance: attacker, Usage: 9 * ms})
		n.do("+2", Asked{Instance: attacker, Usage: 9 * ms})
		used := 9 * ms
		for range 2 {
			n.now += 5 * ms
			used += map[bool]time.Duration{false: 150 * time.Microsecond, true: 3 * ms}[lost > 0]
			n.do("", Sampled{Instance: attacker, Usage: used})
		}
		n.do(map[bool]string{false: "v2 preempted, +1"}[lost > 0], Asked{Instance: victim, Usage: 8*ms - lost})
	}
}

// A namespace has no new share because its only instance comes again.
func TestSharesOutliveStreams(t *testing.T) {
	n := newNode(t, func(*Params) {})
	_, attacker := n.learnTenants()
	n.do("", Left{Instance: attacker})
	n.do("", Joined{Instance: 3, Namespace: "evil", Function: "hog", Usage: 200 * ms})
	for _, space := range n.core.namespaces {
		if space.name == "evil" && space.spentBy(n.now) < float64(190*ms) {
			t.Errorf("evil has had %.0f ms", space.spentBy(n.now)/1e6)
		}
	}
}
