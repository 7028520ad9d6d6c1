package autoscaler

import (
	"math"
	"time"
)

// Constants of Horizon, found by measuring: docs/design/0020 has the numbers, and
// what others did.
const (
	// unknownStart is how long a start is taken to be while none was seen.
	unknownStart = time.Second
	// ramps is how often the number of instances doubles within one start while
	// it is unknown how long a call takes.
	ramps = 4
	// surplusTicks is for how many ticks on end more must be on its way than is
	// wanted before any launch is cancelled.
	surplusTicks = 5
	// confident is how much more than there is the likeliest plan must ask for to
	// be followed at once; below that the cautious one is.
	confident = 1.1
	// firstLook is how soon after a function's first call another one is worth a look,
	// in ticks, and laterLook how soon after each further look the next one is, as a part
	// of the time since that call.
	firstLook = 0.1
	laterLook = 0.6
	// fewCalls get an instance each rather than as many as they need on average.
	fewCalls = 6
	// decisive is the start in seconds that alone decides what the slowest of the calls
	// of a minute wait: in longer ones come more than a hundredth of them.
	decisive = 0.6
)

var horizon = Algorithm{
	Name:   "Horizon",
	About:  "plans for the time that a start takes, orders what clears the queue by then, and takes back what is no longer needed",
	Decide: Horizon,
}

// horizonState is what Horizon carries from tick to tick: how many tickets had arrived,
// and what it has learnt.
type horizonState struct {
	Arrived uint64
	Rates   Rates
}

// Horizon plans for the time that a new instance needs to be there: how many calls
// will wait by then, how many come in a second, and how many instances answer both.
// It never orders for more calls than are there or will come in that time.
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

// redecideAfter is how soon another call is worth a look: while there is no instance, what is
// ordered sooner is there sooner. What is known of a rate grows with the time for which
// calls have come, and the looks are the rarer the longer that is.
func (s Snapshot) redecideAfter(p Params) time.Duration {
	if s.Created > 0 {
		return 0
	}
	return max(time.Duration(firstLook*float64(p.Tick)), time.Duration(laterLook*float64(s.OldestWait)))
}

// forecast is what a plan is made of: times in seconds, and numbers of calls and of
// instances.
type forecast struct {
	// tick, start and hold are how long a tick, a start and a call take, and
	// waited how long the first call that waits has.
	tick, start, hold, waited float64
	// waiting calls wait, and present ones wait or run. Peak is the most that
	// were present of late.
	waiting, present, peak float64
	// created and creating are instances, each for so many calls at a time, and aged
	// is how long ago those on their way were ordered, summed up.
	created, creating, each, aged float64
	// fresh says that calls came at one look only, so that nobody knows whether
	// they keep coming.
	fresh bool
	// seen is for how long calls have come, as far as it is remembered.
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

// required is how many instances there should be, and why.
func (o forecast) required(s Snapshot, r *Rates) (int, Reason) {
	total := s.Created + s.Creating
	required, why := 0, ReasonRetry
	switch {
	case s.Failing: // one, to see whether it starts
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
	return required, why
}

// ramp doubles while it is unknown how long a call takes. One instance would be
// enough for very many calls, or for one; the longer they wait, the less likely is
// that they are short.
func (o forecast) ramp() int {
	doublings := math.Floor(o.waited / max(o.tick, o.start/ramps))
	return int(min(math.Exp2(min(doublings, 30)), float64(o.instances(o.present))))
}

// oneEach is an instance for each call that is there, while they are few and one has
// waited for a tick: of few calls no mean says how long the next one waits. Calls so
// short that one instance is done with all of them before another has started get none.
func (o forecast) oneEach() int {
	if o.present > fewCalls || o.waited < o.tick || o.hold*(fewCalls-1) < o.start {
		return 0
	}
	return o.instances(o.present)
}

// plan follows the likeliest rate if that asks for far more than there is, since
// every tick of delay is a tick of waiting, and else the cautious one: what is
// created stays for long, so that at each tick the noise of a likeliest rate would
// add a little.
func (o forecast) plan(r Rates) (int, Reason) {
	slots, why := o.slots(r.lowRate(o.evidence()))
	if bold, because := o.slots(r.likelyRate(o.evidence())); bold > confident*(o.created+o.creating)*o.each {
		slots, why = bold, because
	}
	return o.instances(slots), why
}

// slots is how many calls must run at a time if they come at a rate: as many as run
// on average and head-room, or as many as run on average and what drains the backlog
// that there will be when a new instance is there.
//
// Calls are expected to keep coming for as long as they have, not longer: a few that
// came within some milliseconds do not promise as many for the time of a start.
//
// There is no need for more than were ever present at a time, so that clients that
// wait for their answer before they call again get one instance each and not
// head-room as well.
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

// instances is how many instances take so many calls at a time.
func (o forecast) instances(slots float64) int {
	return int(min(unlimited, math.Ceil(max(0, slots)/o.each)))
}

// headroom is how many calls more than on average can run at a time, so that few wait
// for another. It grows as the root of the load, as the variance of a queue does; a
// little faster where a start takes no longer than a tick, for there it alone decides
// what the slowest calls wait, and has to cover what is not known of the rate too.
func (o forecast) headroom(rate float64) float64 {
	growth := 0.5 + 0.14*min(1, o.tick/o.start)
	return o.worth()*2.1*math.Pow(rate*o.hold, growth) + o.spare(rate)
}

// spare is the one instance more that short calls need if there is one in a tick: for
// them alone, a wait for one other call is long. Where few come while an instance
// starts, one that is ordered when they wait is there as soon.
func (o forecast) spare(rate float64) float64 {
	short := max(0, 1-2*o.hold/o.tick)
	return o.worth() * 1.35 * short * min(1, rate*o.tick, rate*o.start/3)
}

// worth is which part of the headroom is wanted: less where the start decides what the
// slowest calls wait, or where a call takes long, for the wait that headroom saves is
// small beside that.
func (o forecast) worth() float64 {
	return min(1, decisive/o.start, math.Pow(o.tick/max(o.tick, o.hold), 2.0/3))
}

// backlog is how many calls will wait when an instance that is ordered now is there,
// if they come at a rate and what is there or on its way works on them; negative if
// it could do more. Those on their way have as long to work until then as they were
// ordered sooner.
func (o forecast) backlog(rate float64) float64 {
	work := o.created*o.start + min(o.aged, o.creating*o.start)
	return o.waiting + rate*o.start - work*o.each/o.hold
}

// patience is within what time a backlog is to be gone once a new instance is there:
// for short calls sooner, since it takes few instances, and later after a long start,
// since nobody who waited for that is helped by much, least if the call takes long too.
func (o forecast) patience() float64 {
	return 0.61*o.tick + min(4, 4*o.hold) + 4*max(0, o.start-0.5)*(1+min(1, o.hold))
}

// evidence is how much longer than they did the first calls are taken to have come
// for: three that came at once are no rate. Long calls take many instances each, so that
// more is to be known before; but not longer than what is lost by being late.
func (o forecast) evidence() float64 { return min(2*o.tick, o.hold/2, o.start/3) }

// useful is how many instances are wanted at the most, with the work of those alone
// that are there. Between this and what is required nothing is done, so that what is
// launched and what is cancelled do not alternate.
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
