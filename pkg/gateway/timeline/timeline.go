package timeline

import (
	"iter"
	"time"
)

// Phase is a part of a call's way.
type Phase int

// The phases, in their order.
const (
	Admit Phase = iota
	Queue
	Core
	Claim
	Execute
	Return

	// Phases is their number.
	Phases = iota
)

func (s Phase) String() string {
	return [Phases]string{"admit", "queue", "core", "claim", "execute", "return"}[s]
}

// Span is the time that a phase took.
type Span struct{ From, To time.Time }

// Duration is never negative.
func (s Span) Duration() time.Duration { return s.To.Sub(s.From) }

// Timeline has the times of a call. Call its methods in the order of events. The zero value
// belongs to no call: Begin makes one.
type Timeline struct {
	received, offered, ended time.Time
	claimed                  time.Time // the last time
	// first and last are when the instance reported the head and the end of the answer, with
	// the reported times.
	first, last agentTimes
}

// agentTimes is what an instance said of its times. Its zero value is that it said nothing.
type agentTimes struct {
	at time.Time
	// begunAfter is how long after its claim the function was handed the call; 0
	// if that was before.
	begunAfter time.Duration
	// exec is how long the function has run by then, and core how long the call waited for a
	// core: within begunAfter, or before the claim if it is longer.
	exec, core time.Duration
}

// Begin is the timeline of a call that was received.
func Begin(at time.Time) Timeline { return Timeline{received: at} }

// Offered says that its ticket was offered. Only the first time counts.
func (t *Timeline) Offered(at time.Time) {
	if t.offered.IsZero() && !t.over() {
		t.offered = at
	}
}

// Claimed records that an instance claimed the call, and drops reports of earlier attempts.
func (t *Timeline) Claimed(at time.Time) {
	if !t.over() {
		t.claimed, t.first, t.last = at, agentTimes{}, agentTimes{}
	}
}

// Requeued says that it waits again, as if it had not been claimed.
func (t *Timeline) Requeued() {
	if !t.over() {
		t.claimed, t.first, t.last = time.Time{}, agentTimes{}, agentTimes{}
	}
}

// Headed records the head of the answer: the function received the call begunAfter the claim
// was made, has run for exec since then, and waited for a core of its node before, for core.
func (t *Timeline) Headed(at time.Time, begunAfter, exec, core time.Duration) {
	if !t.over() {
		t.first = agentTimes{at, begunAfter, exec, core}
	}
}

// Executed records the end of the answer, or that there will be none: the function ran for
// exec.
func (t *Timeline) Executed(at time.Time, exec time.Duration) {
	if !t.over() {
		t.last = agentTimes{at: at, exec: exec}
	}
}

// End records that the answer is complete, or that the client no longer waits for it. Later
// events are ignored.
func (t *Timeline) End(at time.Time) {
	if !t.over() {
		t.ended = at
	}
}

func (t Timeline) over() bool { return !t.ended.IsZero() }

// Received is when the call was received.
func (t Timeline) Received() time.Time { return t.received }

// Total is the time from its receipt to its end; 0 if it has not ended.
func (t Timeline) Total() time.Duration {
	if !t.over() {
		return 0
	}
	return max(0, t.ended.Sub(t.received))
}

// Waited is the time from its receipt until an instance had it; 0 if none has.
func (t Timeline) Waited() time.Duration {
	if t.claimed.IsZero() {
		return 0
	}
	return max(0, t.ends()[Queue].Sub(t.received))
}

// All are the phases of a call that has ended, in order; none before that.
func (t Timeline) All() iter.Seq2[Phase, Span] {
	return func(yield func(Phase, Span) bool) {
		if !t.over() {
			return
		}
		from, ends, reached := t.received, t.ends(), t.reached()
		for phase := Admit; phase <= reached; phase++ {
			to := t.ended
			if phase < reached {
				to = earlier(ends[phase], t.ended)
			}
			to = later(to, from)
			if phase == Core && to.Equal(from) {
				continue
			}
			if !yield(phase, Span{from, to}) {
				return
			}
			from = to
		}
	}
}

// reached is the last phase that the call came to.
func (t Timeline) reached() Phase {
	switch {
	case t.offered.IsZero():
		return Admit
	case t.claimed.IsZero():
		return Queue
	case t.last.at.IsZero():
		return Execute
	}
	return Return
}

// ends are the ends of the phases, as far as they are known.
func (t Timeline) ends() [Phases]time.Time {
	begun := t.begun()
	asked, granted := t.core(begun)
	return [Phases]time.Time{
		Admit:   t.offered,
		Queue:   asked,
		Core:    granted,
		Claim:   begun,
		Execute: begun.Add(within(t.last.exec, t.last.at.Sub(begun))),
	}
}

// core is when the call asked for a core of its node, and when it had one; both are when it was
// claimed, or begun if that was before, if it did not wait.
func (t Timeline) core(begun time.Time) (asked, granted time.Time) {
	claimed := earlier(t.claimed, begun)
	if wait := t.first.core; wait > t.first.begunAfter {
		return claimed.Add(-within(wait, claimed.Sub(t.offered))), claimed
	}
	return claimed, claimed.Add(within(t.first.core, begun.Sub(claimed)))
}

// begun is when the function received the call, as reported, but early enough for the reported
// run time.
func (t Timeline) begun() time.Time {
	switch first, last := t.first, t.last; {
	case !first.at.IsZero():
		said := t.claimed.Add(within(first.begunAfter, first.at.Sub(t.claimed)))
		latest := first.at.Add(-within(first.exec, first.at.Sub(t.offered)))
		return earlier(said, latest)
	case !last.at.IsZero():
		return last.at.Add(-within(last.exec, last.at.Sub(t.claimed)))
	}
	return t.claimed
}

// within clamps a reported time to 0 to most.
func within(d, most time.Duration) time.Duration { return max(0, min(d, most)) }

func earlier(a, b time.Time) time.Time {
	if b.Before(a) {
		return b
	}
	return a
}

func later(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}
