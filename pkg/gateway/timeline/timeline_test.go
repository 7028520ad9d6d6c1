package timeline

import (
	"math"
	"testing"
	"time"

	"pgregory.net/rapid"
)

const ms = time.Millisecond

var zero = time.Unix(1_000_000, 0)

func at(d time.Duration) time.Time { return zero.Add(d) }

// phases are what a call's time was spent on.
func phases(t Timeline) map[Phase]time.Duration {
	spent := make(map[Phase]time.Duration)
	for phase, span := range t.All() {
		spent[phase] = span.Duration()
	}
	return spent
}

func TestPhasesOfACall(t *testing.T) {
	for name, tt := range map[string]struct {
		happens func(*Timeline)
		want    map[Phase]time.Duration
	}{
		"an answer in one piece": {func(l *Timeline) {
			l.Offered(at(1 * ms))
			l.Claimed(at(11 * ms))
			l.Headed(at(115*ms), 4*ms, 100*ms, 0)
			l.Executed(at(115*ms), 100*ms)
			l.End(at(117 * ms))
		}, map[Phase]time.Duration{Admit: 1 * ms, Queue: 10 * ms, Claim: 4 * ms, Execute: 100 * ms, Return: 2 * ms}},
		"an answer that is streamed": {func(l *Timeline) {
			l.Offered(at(1 * ms))
			l.Claimed(at(11 * ms))
			l.Headed(at(25*ms), 4*ms, 10*ms, 0)
			l.Executed(at(120*ms), 100*ms)
			l.End(at(120 * ms))
		}, map[Phase]time.Duration{Admit: 1 * ms, Queue: 10 * ms, Claim: 4 * ms, Execute: 100 * ms, Return: 5 * ms}},
		"an answer that is cut off": {func(l *Timeline) {
			l.Offered(at(1 * ms))
			l.Claimed(at(11 * ms))
			l.Headed(at(25*ms), 4*ms, 10*ms, 0)
			l.End(at(50 * ms))
		}, map[Phase]time.Duration{Admit: 1 * ms, Queue: 10 * ms, Claim: 4 * ms, Execute: 35 * ms}},
		"a claim that took longer than the call could": {func(l *Timeline) {
			l.Offered(at(0))
			l.Claimed(at(10 * ms))
			l.Headed(at(30*ms), 18*ms, 15*ms, 0)
			l.Executed(at(30*ms), 15*ms)
			l.End(at(30 * ms))
		}, map[Phase]time.Duration{Admit: 0, Queue: 10 * ms, Claim: 5 * ms, Execute: 15 * ms, Return: 0}},
		"a request that came with its ticket": {func(l *Timeline) {
			l.Offered(at(1 * ms))
			l.Claimed(at(30 * ms))
			l.Headed(at(30*ms), 0, 20*ms, 0)
			l.Executed(at(30*ms), 20*ms)
			l.End(at(31 * ms))
		}, map[Phase]time.Duration{Admit: 1 * ms, Queue: 9 * ms, Claim: 0, Execute: 20 * ms, Return: 1 * ms}},
		"a loan's call that waited for a core": {func(l *Timeline) {
			l.Offered(at(1 * ms))
			l.Claimed(at(2 * ms))
			l.Headed(at(75*ms), 53*ms, 20*ms, 50*ms)
			l.Executed(at(75*ms), 20*ms)
			l.End(at(76 * ms))
		}, map[Phase]time.Duration{Admit: 1 * ms, Queue: 1 * ms, Core: 50 * ms, Claim: 3 * ms, Execute: 20 * ms, Return: 1 * ms}},
		"a ticket that waited for a core": {func(l *Timeline) {
			l.Offered(at(1 * ms))
			l.Claimed(at(61 * ms))
			l.Headed(at(85*ms), 4*ms, 20*ms, 50*ms)
			l.Executed(at(85*ms), 20*ms)
			l.End(at(86 * ms))
		}, map[Phase]time.Duration{Admit: 1 * ms, Queue: 10 * ms, Core: 50 * ms, Claim: 4 * ms, Execute: 20 * ms, Return: 1 * ms}},
		"an instance that exaggerates its wait for a core": {func(l *Timeline) {
			l.Offered(at(1 * ms))
			l.Claimed(at(61 * ms))
			l.Headed(at(85*ms), 4*ms, 20*ms, time.Hour)
			l.Executed(at(85*ms), 20*ms)
			l.End(at(86 * ms))
		}, map[Phase]time.Duration{Admit: 1 * ms, Queue: 0, Core: 60 * ms, Claim: 4 * ms, Execute: 20 * ms, Return: 1 * ms}},
		"a function that timed out": {func(l *Timeline) {
			l.Offered(at(1 * ms))
			l.Claimed(at(10 * ms))
			l.Executed(at(115*ms), 100*ms)
			l.End(at(116 * ms))
		}, map[Phase]time.Duration{Admit: 1 * ms, Queue: 9 * ms, Claim: 5 * ms, Execute: 100 * ms, Return: 1 * ms}},
		"an instance that was lost": {func(l *Timeline) {
			l.Offered(at(1 * ms))
			l.Claimed(at(10 * ms))
			l.End(at(60 * ms))
		}, map[Phase]time.Duration{Admit: 1 * ms, Queue: 9 * ms, Claim: 0, Execute: 50 * ms}},
		"a second attempt": {func(l *Timeline) {
			l.Offered(at(1 * ms))
			l.Claimed(at(10 * ms))
			l.Headed(at(20*ms), 1*ms, 5*ms, 0)
			l.Requeued()
			l.Offered(at(21 * ms))
			l.Claimed(at(31 * ms))
			l.Headed(at(43*ms), 2*ms, 9*ms, 0)
			l.Executed(at(43*ms), 9*ms)
			l.End(at(44 * ms))
		}, map[Phase]time.Duration{Admit: 1 * ms, Queue: 30 * ms, Claim: 2 * ms, Execute: 9 * ms, Return: 2 * ms}},
		"a call that got no instance": {func(l *Timeline) {
			l.Offered(at(1 * ms))
			l.Claimed(at(10 * ms))
			l.Requeued()
			l.End(at(60 * ms))
		}, map[Phase]time.Duration{Admit: 1 * ms, Queue: 59 * ms}},
		"a call that was refused": {func(l *Timeline) {
			l.End(at(2 * ms))
		}, map[Phase]time.Duration{Admit: 2 * ms}},
		"a client that left": {func(l *Timeline) {
			l.Offered(at(1 * ms))
			l.End(at(5 * ms))
			l.Claimed(at(6 * ms))
			l.Headed(at(16*ms), 1*ms, 9*ms, 0)
			l.End(at(17 * ms))
		}, map[Phase]time.Duration{Admit: 1 * ms, Queue: 4 * ms}},
		"a call that has not ended": {func(l *Timeline) {
			l.Offered(at(1 * ms))
		}, map[Phase]time.Duration{}},
	} {
		t.Run(name, func(t *testing.T) {
			l := Begin(zero)
			tt.happens(&l)
			got := phases(l)
			if len(got) != len(tt.want) {
				t.Fatalf("phases %v, want %v", got, tt.want)
			}
			for phase, want := range tt.want {
				if got[phase] != want {
					t.Errorf("%v took %v, want %v", phase, got[phase], want)
				}
			}
		})
	}
}

func TestHowLongACallWaited(t *testing.T) {
	l := Begin(zero)
	l.Offered(at(1 * ms))
	if got := l.Waited(); got != 0 {
		t.Errorf("waited %v before it was claimed", got)
	}
	l.Claimed(at(30 * ms))
	if got := l.Waited(); got != 30*ms {
		t.Errorf("waited %v, want 30ms", got)
	}
	l.Headed(at(30*ms), 0, 20*ms, 0)
	if got := l.Waited(); got != 10*ms {
		t.Errorf("waited %v although it ran, unclaimed, after 10ms", got)
	}
}

// Whatever happens, and whatever instances say, phases are a partition of the call's
// time, in order.
func TestPhasesAddUp(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		now := zero
		later := func() time.Time {
			now = now.Add(time.Duration(rapid.IntRange(0, 50).Draw(t, "ms")) * ms)
			return now
		}
		said := rapid.OneOf(
			rapid.Map(rapid.IntRange(-10, 100), func(n int) time.Duration { return time.Duration(n) * ms }),
			rapid.SampledFrom([]time.Duration{math.MaxInt64, math.MinInt64}),
		)
		l := Begin(now)
		happen := []func(){
			func() { l.Offered(later()) },
			func() { l.Claimed(later()) },
			func() { l.Requeued() },
			func() { l.Headed(later(), said.Draw(t, "begun after"), said.Draw(t, "ran"), said.Draw(t, "core")) },
			func() { l.Executed(later(), said.Draw(t, "ran")) },
		}
		// As a gateway tells it: first the offer, and words only of what was claimed.
		if rapid.Bool().Draw(t, "offered") {
			l.Offered(later())
			for range rapid.IntRange(0, 8).Draw(t, "events") {
				n := rapid.IntRange(0, len(happen)-1).Draw(t, "event")
				if n < 3 || !l.claimed.IsZero() {
					happen[n]()
				}
			}
		}
		l.End(later())
		for range rapid.IntRange(0, 3).Draw(t, "events after the end") {
			happen[rapid.IntRange(0, len(happen)-1).Draw(t, "event")]()
		}
		at, next := zero, Admit
		for phase, span := range l.All() {
			if next == Core && phase != Core {
				next = Claim // it did not wait for one
			}
			if phase != next || !span.From.Equal(at) || span.Duration() < 0 {
				t.Fatalf("%v is from %v to %v; expected %v from %v", phase, span.From.Sub(zero), span.To.Sub(zero), next, at.Sub(zero))
			}
			at, next = span.To, next+1
		}
		if !at.Equal(l.ended) || l.Total() != at.Sub(zero) {
			t.Fatalf("they end at %v, the call at %v after %v", at.Sub(zero), l.ended.Sub(zero), l.Total())
		}
		if l.Waited() < 0 || l.Waited() > l.Total() {
			t.Fatalf("waited %v of %v", l.Waited(), l.Total())
		}
	})
}
