package autoscaler

import (
	"math"
	"time"
)

// Rates is what Horizon measures of a function's calls from tick to tick: a small value whose
// update takes the same time however many calls came.
type Rates struct {
	// Known says that calls have been counted since an earlier tick.
	Known bool
	// Slow counts arrivals over a time that is long compared with their noise, and Fast over a
	// short one, so that it shows a change. Fast begins one tick later, so that it shows
	// whether calls keep coming. Brief counts the last few ticks.
	Slow, Fast, Brief Window
	// Missing is how many expected calls did not come recently, and Promised the rate at which
	// they were expected. If they come now, a busy machine held them up, and the rate has not
	// changed.
	Missing, Promised float64
	// Departed is the snapshot's. Runs counts departures as Slow counts arrivals, and Held is
	// the time for which calls held instances meanwhile, in seconds, without their waits for cores
	// of the nodes: those are no fault of the instances, and more instances do not shorten them. Busy is the number of
	// busy instances at the last tick.
	Departed uint64
	Busy     int
	Runs     float64
	Held     float64
	// Guessed is the part of Held in which some instance may have been idle between two ticks.
	// Full says that at the last tick all were busy and calls waited.
	Guessed float64
	Full    bool
	// Execution is the mean of many execution times.
	Execution time.Duration
	// Hold is the time for which a call holds an instance, in seconds, as last planned with.
	Hold float64
	// Peak is the highest number of calls present at a tick, fading.
	Peak float64
	// Queue is the number of waiting calls when it last fell, and Stuck since when.
	Queue int
	Stuck time.Duration
	// Surplus is for how many consecutive ticks more instances were starting than needed.
	Surplus int
	// Creating is how many instances were starting after the last tick, and Aged the sum of
	// the times since their launches, in seconds.
	Creating int
	Aged     float64
}

// Window counts calls over a time. Both fade, so that Calls divided by Span is a rate.
type Window struct {
	Calls float64
	Span  time.Duration
}

const (
	// slowMemory is how far back arrivals count: at ten calls a second, the noise of the count
	// is a twentieth.
	slowMemory  = 30 * time.Second
	fastMemory  = 2 * time.Second
	briefMemory = 300 * time.Millisecond
	// heldUp is for how long a machine that is short of CPU holds up calls.
	heldUp = time.Second
	// followedAfter is how long after the first calls others must come, or they were all: the
	// calls of one burst may take some milliseconds to arrive.
	followedAfter = 10 * time.Millisecond
	// forgetAfter is the time without calls after which earlier calls say nothing about later
	// ones.
	forgetAfter = 10 * time.Second
	// surprise is how many standard deviations, and how many calls, exceed chance: less than
	// once an hour at a steady rate.
	surprise = 4
	// steadyWork is over how many executions the mean of the last few is smoothed: ten alone
	// would vary between half and twice the time of a call.
	steadyWork = 100
)

// add fades the counts and adds n calls in a time.
func (w Window) add(n float64, over, memory time.Duration) Window {
	fade := fading(over, memory)
	// Calls that come within this time have begun to fade at its end.
	return Window{Calls: w.Calls*fade + n, Span: time.Duration(float64(w.Span)*fade + float64(memory)*(1-fade))}
}

func fading(over, memory time.Duration) float64 { return math.Exp(-float64(over) / float64(memory)) }

// rate is the number of calls per second.
func (w Window) rate() float64 {
	if w.Span <= 0 {
		return 0
	}
	return w.Calls / w.Span.Seconds()
}

// surprises reports whether these are far more calls than another window predicts.
func (w Window) surprises(other Window) bool {
	expected := other.rate() * w.Span.Seconds()
	return w.Calls > expected+surprise*math.Sqrt(expected)+surprise
}

// advance applies a snapshot; arrived is how many tickets had arrived at the last one.
func (r Rates) advance(s Snapshot, p Params, arrived uint64) Rates {
	came := float64(s.Arrived - arrived)
	ran := float64(int64(s.Departed - r.Departed)) // negative if more tickets came back
	busy := min(r.Busy, s.Busy)                    // instances that came or rested in between count as idle
	full := s.Created > 0 && s.Busy >= s.Created && s.Waiting() > 0
	rested := !full || !r.Full
	r.Departed, r.Busy, r.Full = s.Departed, s.Busy, full
	r.Execution = steadied(r.Execution, s.MeanExecution, came)
	if !r.Known || s.Elapsed > forgetAfter || s.Elapsed <= 0 || s.Arrived < arrived {
		// The present calls came at one moment, as far as known, and show no rate.
		return Rates{Known: true, Departed: r.Departed, Busy: r.Busy, Execution: r.Execution, Runs: r.Runs, Held: r.Held, Guessed: r.Guessed, Full: r.Full, Hold: r.Hold, Peak: s.present()}
	}
	fade := fading(s.Elapsed, slowMemory)
	r.Peak = max(s.present(), r.Peak*fade)
	if s.Elapsed <= 2*p.Tick { // else nobody saw who was busy
		r.Runs = max(0, r.Runs*fade+ran)
		held := float64(max(0, busy-s.AwaitingCore))*s.Elapsed.Seconds() - s.CoreWaited.Seconds()
		r.Held, r.Guessed = r.Held*fade+held, r.Guessed*fade
		if rested {
			r.Guessed += max(0, held)
		}
	}
	now := Window{Calls: came - r.Missing, Span: s.Elapsed}
	r.Brief = r.Brief.add(came, s.Elapsed, briefMemory)
	if r.Slow.Span > 0 && now.surprises(r.Slow) {
		r.Slow, r.Fast, r.Missing = Window{Calls: came, Span: s.Elapsed}, Window{}, 0
		return r
	}
	r.Missing, r.Promised = r.missing(came, s.Elapsed)
	if r.Slow.Span > 0 {
		r.Fast = r.Fast.add(came, s.Elapsed, fastMemory)
	}
	r.Slow = r.Slow.add(came, s.Elapsed, slowMemory)
	if r.Fast.surprises(r.Slow) {
		r.Slow = r.Fast
	}
	return r
}

// missing is how many expected calls are missing, and the rate at which they were expected,
// after came calls in a time. Calls are held up for at most heldUp; beyond that the rate has
// fallen.
func (r Rates) missing(came float64, elapsed time.Duration) (calls, rate float64) {
	rate = r.Promised
	if r.Missing <= 0 || r.Missing >= rate*heldUp.Seconds() {
		rate = r.Slow.rate()
	}
	return min(max(0, r.Missing+rate*elapsed.Seconds()-came), rate*heldUp.Seconds()), rate
}

// aged is the sum of the times since the launches of the starting instances, in seconds. If
// fewer are starting than before, the oldest have started.
func (r Rates) aged(s Snapshot) float64 {
	ready := float64(max(0, r.Creating-s.Creating))
	before := max(0, r.Aged-ready*max(0, (s.MeanStart-s.Elapsed).Seconds()))
	return before + float64(s.Creating)*s.Elapsed.Seconds()
}

// stuck is for how long the queue has not become shorter although no instance is starting. It
// is shorter if it fell by a tenth.
func (r Rates) stuck(s Snapshot) (since time.Duration, from int) {
	waiting := max(0, s.Waiting())
	switch {
	case s.Created == 0 || r.Queue == 0 || float64(waiting) < .9*float64(r.Queue):
		return 0, waiting
	case s.Creating > 0:
		return r.Stuck, max(r.Queue, waiting)
	}
	return r.Stuck + s.Elapsed, r.Queue
}

// present is the number of waiting and running calls; an instance that runs several at a time
// counts as full.
func (s Snapshot) present() float64 {
	return float64(max(0, s.Waiting()) + s.Busy*max(1, s.Concurrency))
}

// steadied moves the known mean towards the mean of the last few executions, weighted by their
// number.
func steadied(known, mean time.Duration, calls float64) time.Duration {
	if known <= 0 || mean <= 0 {
		return max(known, mean)
	}
	return known + time.Duration(calls/(calls+steadyWork)*float64(mean-known))
}

// held is for how long, in seconds, a call keeps an instance from the next one: its execution
// plus claiming, answering and pulling, which are the larger part for short calls.
// Observations count as far as they are certain.
func (r Rates) held(tick time.Duration) float64 {
	work := r.Execution.Seconds()
	if work <= 0 || r.Runs < 1 {
		return work
	}
	// Ticks that observe the same call add no information.
	looks := r.Held / tick.Seconds()
	guessed := r.Guessed / tick.Seconds()
	sure := looks - 2*math.Sqrt(guessed*(1+work/tick.Seconds())) - float64(r.Busy)*work/tick.Seconds()
	return max(work, sure*tick.Seconds()/r.Runs)
}

// holding is held, but while instances start it grows no faster than to the double in
// the time that they take. Instances that start take from those that run: calls that
// take longer for it would else order more instances, which make them take longer.
func (r Rates) holding(s Snapshot, p Params, start float64) float64 {
	held := r.held(p.Tick)
	if s.Creating > 0 && r.Hold > 0 {
		held = min(held, r.Hold*(1+s.Elapsed.Seconds()/start))
	}
	return held
}

// lowRate is the conservative rate. evidence is the time that must pass before a few calls in
// a short time count as a rate.
func (r Rates) lowRate(evidence float64) float64 {
	n := r.Slow.Calls
	if n <= 0 {
		return 0
	}
	sure := n / (r.Slow.Span.Seconds() + evidence) * max(0, 1-1.7*math.Pow(n, -2.0/3))
	return min(r.atMost(), max(sure, r.pressing(evidence)))
}

// pressing is a lower bound of the recent rate while all instances are busy and calls wait.
// Clients that wait for their answers call as fast as instances allow, so that their rate
// grows with each instance, and a long memory lags behind.
func (r Rates) pressing(evidence float64) float64 {
	if !r.Full || r.Brief.Span <= 0 {
		return 0
	}
	n := r.Brief.Calls
	return (n - 3*math.Sqrt(n)) / (r.Brief.Span.Seconds() + evidence)
}

func (r Rates) likelyRate(evidence float64) float64 {
	n := r.Slow.Calls
	if n <= 1 {
		return 0
	}
	return min(r.atMost(), (n-0.5)/(r.Slow.Span.Seconds()+evidence))
}

// followed reports whether enough time has passed since the first calls to know whether more
// follow.
func (r Rates) followed() bool { return r.Fast.Span >= followedAfter }

// atMost is an upper bound of the recent rate: calls that came all at once and were not
// followed by others are no rate.
func (r Rates) atMost() float64 {
	if !r.followed() {
		return math.Inf(1)
	}
	return (r.Fast.Calls + 2*math.Sqrt(r.Fast.Calls)) / r.Fast.Span.Seconds()
}
