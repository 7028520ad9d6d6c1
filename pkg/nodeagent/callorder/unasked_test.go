package callorder

import (
	"testing"
	"time"
)

// joinAsking lets instances join that must ask, and lets their processor time be known.
func (n *node) joinAsking(ids ...InstanceID) {
	for _, id := range ids {
		n.do("", Joined{Instance: id, Namespace: "default", Function: "f", MustAsk: true})
		n.do("", Sampled{Instance: id})
	}
}

func TestWhoComputesWithoutATicketIsLow(t *testing.T) {
	n := newNode(t, func(p *Params) { p.Unasked.Start = 50 * ms })
	n.joinAsking(1)
	n.do("", Sampled{Instance: 1, Usage: 40 * ms})
	n.do("v1 unasked", Sampled{Instance: 1, Usage: 60 * ms})
	n.do("^1 ticket, +1", Asked{Instance: 1, Usage: 60 * ms})
	n.do("v1 unasked", Ended{Instance: 1, Usage: 70 * ms})
	n.do("^1 calm", ModeChanged{Busy: false})
}

func TestAStartIsNotSlowedDown(t *testing.T) {
	n := newNode(t, func(*Params) {})
	n.joinAsking(1)
	n.do("", Sampled{Instance: 1, Usage: 4900 * ms})
	n.do("+1", Asked{Instance: 1, Usage: 4950 * ms})
	n.do("", Ended{Instance: 1, Usage: 5000 * ms})
	n.do("v1 unasked", Sampled{Instance: 1, Usage: 5020 * ms})
}

// A pod has a minute of processor time for its start, and then what an agent and sidecars need. One that
// goes on computing is low, until its next call gets a ticket.
func TestAPodIsRationedLaterThanAProcess(t *testing.T) {
	n := newNode(t, func(p *Params) { p.Unasked = UnaskedOfPods() })
	n.joinAsking(1, 2)
	n.do("", Sampled{Instance: 1, Usage: 59 * time.Second})
	n.do("v2 unasked", Sampled{Instance: 2, Usage: 61 * time.Second})
	n.do("+1", Asked{Instance: 1, Usage: 59 * time.Second})
	n.do("", Ended{Instance: 1, Usage: 60 * time.Second})
	n.do("", Sampled{Instance: 1, Usage: 60*time.Second + 190*ms})
	n.do("v1 unasked", Sampled{Instance: 1, Usage: 60*time.Second + 210*ms})
	n.do("^1 ticket, +1", Asked{Instance: 1, Ask: 1, Usage: 60*time.Second + 210*ms})
}

func TestWhatWasComputedOnACalmNodeDoesNotCount(t *testing.T) {
	n := newNode(t, func(p *Params) { p.Unasked.Start = 50 * ms })
	n.joinAsking(1)
	n.do("", ModeChanged{Busy: false})
	n.do("", ModeChanged{Busy: true})
	n.do("", Sampled{Instance: 1, Usage: time.Hour})
	n.do("", Sampled{Instance: 1, Usage: time.Hour + 49*ms})
	n.do("v1 unasked", Sampled{Instance: 1, Usage: time.Hour + 50*ms})
}

// A function that computes between its calls pays from the same allowance, however often it asks.
func TestAsksDoNotBuyAnAllowance(t *testing.T) {
	n := newNode(t, func(p *Params) { p.Unasked.Start = 20 * ms })
	n.joinAsking(1)
	usage := time.Duration(0)
	for i := range 3 {
		usage += 7 * ms // between calls
		n.do("+1", Asked{Instance: 1, Usage: usage})
		usage += ms
		n.do([]string{"", "", "v1 unasked"}[i], Ended{Instance: 1, Usage: usage})
	}
}

// An agent that says at once that its call is over computes on what it has regained, and no more.
func TestExemptionsOfPodsAreRegained(t *testing.T) {
	n := newNode(t, func(p *Params) { p.Unasked = UnaskedOfPods() })
	n.joinAsking(1)
	n.do("+1", Asked{Instance: 1})
	n.do("", Ended{Instance: 1})
	if !n.core.MayBeExempt(n.now, 1) {
		t.Fatal("an instance that has used nothing must ask")
	}
	n.do("", Exempted{Instance: 1})
	n.do("ask 1", Sampled{Instance: 1, Usage: 200 * ms})
	n.do("+1", Asked{Instance: 1, Usage: 200 * ms})
	n.do("", Ended{Instance: 1, Usage: 200 * ms})
	if n.core.MayBeExempt(n.now, 1) {
		t.Error("an instance that has used up its exemption has another one")
	}
	n.do("v1 unasked", Sampled{Instance: 1, Usage: 300 * ms})
	n.do("^1 ticket, +1", Asked{Instance: 1, Usage: 300 * ms})
	n.do("v1 unasked", Ended{Instance: 1, Usage: 300 * ms})
}

// joinsAgain is what a stream of one and the same pod begins with.
func joinsAgain(id InstanceID, used time.Duration) Joined {
	return Joined{Instance: id, Namespace: "default", Function: "f", MustAsk: true, Name: "pod", Usage: used}
}

// A new stream gives an instance no new allowance, neither for its start nor for its calls.
func TestWhoComesAgainHasTheAllowanceThatItHad(t *testing.T) {
	n := newNode(t, func(*Params) {})
	n.do("", joinsAgain(1, time.Second))
	n.do("", Left{Instance: 1})
	n.do("", joinsAgain(2, 2*time.Second))
	n.do("v2 unasked", Sampled{Instance: 2, Usage: 5*time.Second + ms})
	n.do("^2 ended", Left{Instance: 2})
	n.do("v3 unasked", joinsAgain(3, 6*time.Second))
	n.do("^3 ended", Left{Instance: 3})
	n.now = 10 * time.Second
	n.do("", joinsAgain(4, 6*time.Second))
}

// Nor does one in which it says that it has another class.
func TestWhoComesAgainAsBatchKeepsTheAllowanceThatItHad(t *testing.T) {
	for _, class := range []Class{Batch, LatencyCritical} {
		n := newNode(t, func(*Params) {})
		join := func(id InstanceID, class Class) Joined {
			return Joined{Instance: id, Class: class, MustAsk: true, Name: "pod", Usage: 6 * time.Second}
		}
		n.do("", Joined{Instance: 1, MustAsk: true, Name: "pod"})
		n.do("v1 unasked", Sampled{Instance: 1, Usage: 6 * time.Second})
		n.do("^1 ended", Left{Instance: 1})
		n.do(map[Class]string{Batch: "v2 batch"}[class], join(2, class))
		n.do(map[Class]string{Batch: "^2 ended"}[class], Left{Instance: 2})
		n.do("v3 unasked", join(3, Standard))
	}
}

// TestACallWithATicketIsNotLow: its stream broke, and what it computed meanwhile counted as unasked.
func TestACallWithATicketIsNotLow(t *testing.T) {
	n := newNode(t, func(*Params) {})
	n.do("", joinsAgain(1, time.Second))
	n.do("", Left{Instance: 1})
	n.do("v2 unasked", joinsAgain(2, 20*time.Second))
	n.do("^2 ticket", Running{Instance: 2, Usage: 20 * time.Second})
}

// What an instance has used before it says hello is a part of its start.
func TestAnOldInstanceIsNotStarting(t *testing.T) {
	n := newNode(t, func(*Params) {})
	n.do("", Joined{Instance: 1, MustAsk: true, Usage: time.Hour})
	n.do("", Sampled{Instance: 1, Usage: time.Hour + 19*ms})
	n.do("v1 unasked", Sampled{Instance: 1, Usage: time.Hour + 20*ms})
}

func TestAnAllowanceComesBack(t *testing.T) {
	n := newNode(t, func(p *Params) { p.Unasked.Start = 20 * ms })
	n.joinAsking(1)
	n.do("v1 unasked", Sampled{Instance: 1, Usage: time.Hour}) // the debt is bounded
	n.now = 1900 * ms
	n.do("", Sampled{Instance: 1, Usage: time.Hour})
	n.now = 2000 * ms
	n.do("^1 rested", Sampled{Instance: 1, Usage: time.Hour})
	for range 100 { // two hundredths of a core
		n.now += 100 * ms
		usage := time.Hour + time.Duration(float64(n.now-2000*ms)*0.02)
		n.do("", Sampled{Instance: 1, Usage: usage})
	}
}

func TestWhoWaitsAndComputesIsLow(t *testing.T) {
	n := newNode(t, func(p *Params) { p.Unasked.Start = 20 * ms; p.Order = FIFO })
	n.joinAsking(1, 2)
	n.do("+2", Asked{Instance: 2})
	n.do("", Asked{Instance: 1})
	n.do("v1 unasked", Sampled{Instance: 1, Usage: 30 * ms})
	n.do("^1 ticket, +1", Ended{Instance: 2})
}

func TestAnExemptionEnds(t *testing.T) {
	n := newNode(t, func(*Params) {})
	n.joinAsking(1)
	n.do("+1", Asked{Instance: 1})
	n.do("", Ended{Instance: 1, Usage: ms})
	n.do("", Exempted{Instance: 1})
	n.do("", Sampled{Instance: 1, Usage: 100 * ms})
	n.do("ask 1", Sampled{Instance: 1, Usage: 101 * ms})
	n.do("", Sampled{Instance: 1, Usage: 120 * ms})
	n.do("v1 unasked", Sampled{Instance: 1, Usage: 121 * ms})
}

func TestWhoNeedNotAskIsNeverLow(t *testing.T) {
	n := newNode(t, func(*Params) {})
	n.join(1)
	n.do("", Sampled{Instance: 1})
	n.do("", Sampled{Instance: 1, Usage: time.Hour})
}

func TestAllAreLookedAtInTurn(t *testing.T) {
	n := newNode(t, func(*Params) {})
	n.joinAsking(1, 2, 3, 4, 5)
	n.do("+3", Asked{Instance: 3})
	seen := map[InstanceID]int{}
	for range 6 {
		got := n.core.AppendUnasked(nil, 2)
		if len(got) != 2 {
			t.Fatalf("looked at %v", got)
		}
		for _, id := range got {
			seen[id]++
		}
	}
	if len(seen) != 4 || seen[1] != 3 || seen[5] != 3 {
		t.Errorf("looked at %v", seen)
	}
	if got := n.core.AppendUnasked(nil, 99); len(got) != 4 {
		t.Errorf("looked at %v", got)
	}
	n.do("", Left{Instance: 4})
	n.do("", Left{Instance: 5})
	if got := n.core.AppendUnasked(nil, 99); len(got) != 2 {
		t.Errorf("looked at %v", got)
	}
	n.do("", ModeChanged{Busy: false})
	if got := n.core.AppendUnasked(nil, 99); len(got) > 0 {
		t.Errorf("on a calm node looked at %v", got)
	}
}

// Beside another tenant's calls, nobody computes more without tickets than the share of its namespace, not even
// for a start, or because its function runs several calls at a time.
func TestStartsGoBehindTheCallsOfOthersAboveTheShare(t *testing.T) {
	for _, must := range []bool{false, true} {
		n := newNode(t, func(p *Params) { p.Unasked = UnaskedOfPods() })
		n.do("", Joined{Instance: 1, Namespace: "shop", Function: "cart"})
		n.do("", Joined{Instance: 2, Namespace: "evil", Function: "starts", MustAsk: must})
		n.do("", Sampled{Instance: 2})
		n.do("+1", Asked{Instance: 1})
		n.do("", Ended{Instance: 1, Usage: 8 * ms})
		n.now += 100 * ms
		n.do("v2 unasked", Sampled{Instance: 2, Usage: 80 * ms})
		n.now += wantsFor
		n.do("^2 rested", Sampled{Instance: 2, Usage: 180 * ms}) // nobody wants anything any more
	}
}

// Nor is that so while others are content with little, or its namespace has had no more than they.
func TestStartsAreNotSlowedDownForLittle(t *testing.T) {
	for _, used := range []time.Duration{ms, 100 * ms} {
		n := newNode(t, func(p *Params) { p.Unasked = UnaskedOfPods() })
		n.do("", Joined{Instance: 1, Namespace: "shop", Function: "cart"})
		n.do("", Joined{Instance: 2, Namespace: "other", Function: "starts", MustAsk: true})
		n.do("+1", Asked{Instance: 1})
		n.do("", Ended{Instance: 1, Usage: used})
		n.now += 100 * ms
		n.do("", Sampled{Instance: 2, Usage: 80 * ms})
	}
}

// An exemption is of the same size above the share, and there is no new one.
func TestAboveItsShareNobodyIsExempt(t *testing.T) {
	n := newNode(t, func(p *Params) { p.Unasked = UnaskedOfPods() })
	n.do("", Joined{Instance: 1, Namespace: "shop", Function: "cart"})
	n.do("", Joined{Instance: 2, Namespace: "evil", Function: "hog", MustAsk: true})
	n.do("+2", Asked{Instance: 2})
	n.do("", Ended{Instance: 2})
	n.do("", Exempted{Instance: 2})
	n.do("+1", Asked{Instance: 1})
	n.do("", Ended{Instance: 1, Usage: 8 * ms})
	n.now += 100 * ms
	n.do("ask 2", Sampled{Instance: 2, Usage: 50 * ms})
	if n.core.MayBeExempt(n.now, 2) {
		t.Error("it may be exempt again")
	}
	n.now += 100 * ms
	n.do("v2 unasked", Sampled{Instance: 2, Usage: 90 * ms})
	n.do("^2 ticket, +2", Asked{Instance: 2, Usage: 90 * ms})
	n.do("v2 unasked", Ended{Instance: 2, Usage: 90 * ms})
}
