package autoscaler

import (
	"math"
	"time"
)

// Constants of Horizon, found by measurements: docs/design/0020 has the figures, and how other
// values did.
const (
	// unknownStart is the assumed start time while none was measured.
	unknownStart = time.Second
	// ramps is how often the number of instances doubles within one start time while the time
	// of a call is unknown.
	ramps = 4
	// surplusTicks is for how many consecutive ticks more instances must be starting than are
	// needed before any launch is cancelled.
	surplusTicks = 5
	// confident is by which factor the likeliest plan must exceed the existing instances to be
	// followed at once; below it Horizon follows the conservative plan.
	confident = 1.1
	// firstLook is how soon after a function's first call the next one triggers a decision, in
	// ticks, and laterLook the time to each further decision, as a part of the time since that
	// call.
	firstLook = 0.1
	laterLook = 0.6
	// fewCalls get an instance each rather than as many as they need on average.
	fewCalls = 6
	// decisive is the start time in seconds above which it alone decides how long the slowest
	// calls of a minute wait: more than a hundredth of them come during such a start.
	decisive = 0.6
)

var horizon = Algorithm{
	Name:   "Horizon",
	About:  "plans for the time that a start takes, orders what clears the queue by then, and takes back what is no longer needed",
	Decide: Horizon,
}

// horizonState is what Horizon carries from tick to tick: how many tickets had arrived, and
// the measured rates.
type horizonState struct {
	Arrived uint64
	Rates   Rates
}

// Horizon plans for the time that a new instance needs to start: how many calls will wait by
// then, how many come per second, and how many instances serve both. It never launches for
// more calls than are present or will come in that time.
func Horizon(s Snapshot, p Params) Decision {
	before := stateOf[horizonState](s)
	r := before.Rates.advance(s, p, before.Arrived)
	r.Aged = before.Rates.aged(s)
	o := newForecast(s, p, r)
	d := Decision{Why: ReasonNoDemand, Rate: r.Slow.rate(), Horizon: time.Duration(o.start * float64(time.Second))}
	r.Hold = o.hold
	r.Stuck, r.Queue = r.stuck(s)
	quiet := s.Waiting() <= 0 && s.Arrived == before.Arrived
	if !quiet {
		d.Required, d.Why = o.required(s, &r)
	}
	total := s.Created + s.Creating
	d.Create = max(0, d.Required-total)
	switch {
	case d.Create == 0 && !quiet:
		d.Why = ReasonEnough
	case d.Create == 1 && total == 0 && !s.Failing:
		d.Why = ReasonFirst
	}
	if s.Room >= 0 && d.Create > s.Room {
		d.Create, d.Why = s.Room, ReasonNoRoom
	}
	keep := o.useful(r)
	if r.Surplus++; d.Create > 0 || s.Waiting() > 0 || total <= keep {
		r.Surplus = 0
	}
	if r.Surplus >= surplusTicks && s.Creating > 0 {
		d.Cancel, d.Why, r.Surplus = min(s.Creating, total-keep), ReasonSurplus, 0
	}
	d.RedecideAfter = s.redecideAfter(p)
	r.Creating = s.Creating + d.Create - d.Cancel
	d.State = horizonState{Arrived: s.Arrived, Rates: r}
	return d
}

// redecideAfter is how soon another call should trigger a decision. While the function has no
// instance, an earlier launch is an earlier start. The longer calls have come, the better
// their rate is known, and the rarer the decisions become.
func (s Snapshot) redecideAfter(p Params) time.Duration {
	if s.Created > 0 {
		return 0
	}
	return max(time.Duration(firstLook*float64(p.Tick)), time.Duration(laterLook*float64(s.OldestWait)))
}

// forecast has the inputs of a plan: times in seconds, and numbers of calls and instances.
type forecast struct {
	// tick, start and hold are the times of a tick, a start and a call. waited is how long the
	// oldest waiting call has waited.
	tick, start, hold, waited float64
	// waiting calls wait, and present ones wait or run. peak is the recent maximum of present.
	waiting, present, peak float64
	// created and creating are numbers of instances, each for each calls at a time. aged is
	// the sum of the times since the starting ones were launched.
	created, creating, each, aged float64
	// fresh says that calls came in one tick only, so that it is unknown whether more follow.
	fresh bool
	// seen is for how long calls have come, as far as remembered.
	seen float64
}

func newForecast(s Snapshot, p Params, r Rates) forecast {
	o := forecast{
		tick: p.Tick.Seconds(), start: s.MeanStart.Seconds(), waited: s.OldestWait.Seconds(),
		waiting: float64(max(0, s.Waiting())), present: s.present(), peak: r.Peak,
		created: float64(s.Created), creating: float64(s.Creating), each: float64(max(1, s.Concurrency)),
		aged: r.Aged, fresh: !r.followed(), seen: r.Slow.Span.Seconds(),
	}
	if o.start <= 0 {
		o.start = unknownStart.Seconds()
		if s.Created == 0 {
			o.start = max(o.start, o.waited)
		}
	}
	o.start = max(o.start, o.tick)
	o.hold = r.holding(s, p, o.start)
	return o
}

// required is how many instances the function needs, and why.
func (o forecast) required(s Snapshot, r *Rates) (int, Reason) {
	total := s.Created + s.Creating
	var required int
	var why Reason
	switch {
	case o.hold <= 0:
		required, why = o.ramp(), ReasonRamp
	default:
		required, why = o.plan(*r)
		if each := o.oneEach(); each > required {
			required, why = each, ReasonBacklog
		}
		if required <= total && r.Stuck.Seconds() > o.start+2*o.hold+2 {
			r.Stuck = 0
			required, why = min(total+(total+1)/2, o.instances(o.present)), ReasonStanding
		}
	}
	if s.Waiting() > 0 {
		required = max(1, required)
	}
	if s.Failing && required > total {
		// One more than can be called, to see whether it starts: nothing else shows that.
		required, why = min(required, s.Created+1), ReasonRetry
	}
	return required, why
}

// ramp doubles the instances while the time of a call is unknown. One instance may be enough
// for very many calls, or for one; the longer they wait, the less likely they are short.
func (o forecast) ramp() int {
	doublings := math.Floor(o.waited / max(o.tick, o.start/ramps))
	return int(min(math.Exp2(min(doublings, 30)), float64(o.instances(o.present))))
}

// oneEach is one instance for each present call, while they are few and one has waited for a
// tick: for few calls, a mean does not predict how long the next one waits. Calls so short
// that one instance finishes all of them before another has started get none.
func (o forecast) oneEach() int {
	if o.present > fewCalls || o.waited < o.tick || o.hold*(fewCalls-1) < o.start {
		return 0
	}
	return o.instances(o.present)
}

// plan follows the likeliest rate if that needs far more instances than exist, because every
// tick of delay is a tick of waiting. Otherwise it follows the conservative rate: instances
// stay for long, so the noise of a likeliest rate would add a few at each tick.
func (o forecast) plan(r Rates) (int, Reason) {
	slots, why := o.slots(r.lowRate(o.evidence()))
	if bold, because := o.slots(r.likelyRate(o.evidence())); bold > confident*(o.created+o.creating)*o.each {
		slots, why = bold, because
	}
	return o.instances(slots), why
}

// slots is how many calls must run at a time at a given rate: the average plus headroom, or
// the average plus the number that drains the backlog at the time when a new instance has
// started.
//
// Calls are expected to keep coming for as long as they have, not longer: a few calls within
// some milliseconds do not predict as many for the time of a start.
//
// The result is at most the highest number of calls that were present at a time, so that
// clients that wait for each answer before they call again get one instance each, without
// headroom.
func (o forecast) slots(rate float64) (float64, Reason) {
	load, coming := rate*o.hold, o.present
	if !o.fresh {
		coming += rate * min(o.start, o.seen)
	}
	most := o.peak
	if o.created == 0 {
		most = max(most, coming)
	}
	steady := min(load+o.headroom(rate), most+math.Floor(o.spare(rate))) - 0.35
	drain := min(load+o.backlog(rate)*o.hold/o.patience(), coming) - 0.4
	if drain > steady {
		return drain, ReasonBacklog
	}
	return steady, ReasonRate
}

// instances is how many instances run that many calls at a time.
func (o forecast) instances(slots float64) int {
	return int(min(unlimited, math.Ceil(max(0, slots)/o.each)))
}

// headroom is how many calls beyond the average can run at a time, so that few calls wait for
// another. It grows with the square root of the load, like the variance of a queue. It grows a
// little faster where a start takes no longer than a tick: there it alone decides how long the
// slowest calls wait, and must also cover the uncertainty of the rate.
func (o forecast) headroom(rate float64) float64 {
	growth := 0.5 + 0.14*min(1, o.tick/o.start)
	return o.worth()*2.1*math.Pow(rate*o.hold, growth) + o.spare(rate)
}

// spare is one more instance for short calls if a tick brings one: for them, waiting for one
// other call is long. Where few calls come during a start, an instance that is launched when
// they wait is as soon there.
func (o forecast) spare(rate float64) float64 {
	short := max(0, 1-2*o.hold/o.tick)
	return o.worth() * 1.35 * short * min(1, rate*o.tick, rate*o.start/3)
}

// worth scales headroom down for long cold starts and long calls, where the queueing delay
// that it would save is small by comparison.
func (o forecast) worth() float64 {
	return min(1, decisive/o.start, math.Pow(o.tick/max(o.tick, o.hold), 2.0/3))
}

// backlog is how many calls will wait when an instance that is launched now has started, at a
// given rate, with the existing and starting instances at work; negative if they could run
// more calls. A starting instance works until then for as long as it was launched earlier.
func (o forecast) backlog(rate float64) float64 {
	work := o.created*o.start + min(o.aged, o.creating*o.start)
	return o.waiting + rate*o.start - work*o.each/o.hold
}

// patience is the time within which a new instance should have cleared the backlog. It is
// shorter for short calls, which need few instances. It is longer after a long start, where
// clients gain little after their wait, and longest if the calls are long too.
func (o forecast) patience() float64 {
	return 0.61*o.tick + min(4, 4*o.hold) + 4*max(0, o.start-0.5)*(1+min(1, o.hold))
}

// evidence is added to the time for which the first calls have come, because three calls at
// once are no rate. Long calls need many instances each, so they need more evidence; but no
// more than the cost of being late.
func (o forecast) evidence() float64 { return min(2*o.tick, o.hold/2, o.start/3) }

// useful is the number of instances beyond which launches are cancelled; it counts only the
// work of existing instances. Between this number and the required one nothing is done, so
// that launches and cancellations do not alternate.
func (o forecast) useful(r Rates) int {
	slots := o.present
	if o.hold > 0 {
		rate := r.Slow.rate() + math.Sqrt(r.Slow.Calls)/max(o.tick, r.Slow.Span.Seconds())
		load := rate * o.hold
		o.creating = 0
		slots = max(slots, load+o.headroom(rate), load+o.backlog(rate)*o.hold/o.patience())
	}
	return 1 + o.instances(1.5*slots)
}
