package fpcs

import (
	"math"
	"time"
)

// Tunables.
var (
	Z            = 1.88
	Z2           = 1.0
	P1           = .65
	Band         = 1.3
	Beta         = 2.4
	Spare        = 1.31
	RD           = 5.2
	RDMax        = 4.0
	RS           = 4.0
	S0           = .5
	Round        = .465
	RTick        = .8
	PhiD         = .5
	PhiP         = .6
	TFloor       = 0.02
	SurplusTicks = 3
)

// Horizon plans for the time that a new instance needs to be there.
func Horizon(s Snapshot, p Params) Decision {
	r := s.Memory.Rates.renew(s, p)
	o := look(s, p, r)
	d := Decision{Why: ReasonNoDemand, Rate: r.Slow.rate(), Horizon: time.Duration(o.start * float64(time.Second))}
	quiet := s.Waiting() <= 0 && s.Arrived == s.Memory.Arrived
	switch {
	case quiet:
	case s.Failing:
		d.Required, d.Why = 1, ReasonRetry
	case o.work <= 0:
		d.Required, d.Why = o.ramp(), ReasonRamp
	default:
		d.Required, d.Why = o.plan(r)
	}
	if s.Waiting() > 0 {
		d.Required = max(1, d.Required)
	}
	total := s.Created + s.Creating
	d.Create = max(0, d.Required-total)
	switch {
	case d.Create == 0 && !quiet:
		d.Why = ReasonEnough
	case d.Create > 0 && total == 0 && d.Create == 1 && !s.Failing:
		d.Why = ReasonFirst
	}
	if s.Room >= 0 && d.Create > s.Room {
		d.Create, d.Why = s.Room, ReasonNoRoom
	}
	r.Surplus = o.surplus(r)
	if d.Create == 0 && r.Surplus >= SurplusTicks {
		if n := min(s.Creating, total-o.keep(r)); n > 0 {
			d.Withdraw, d.Why = n, ReasonSurplus
			r.Surplus = 0
		}
	}
	d.Next = Memory{Arrived: s.Arrived, Rates: r}
	return d
}

// outlook is what a plan is made of: times in seconds, and calls.
type outlook struct {
	tick, work, start, waited float64
	waiting, present          float64
	each                      float64 // calls that an instance takes at a time
	created, creating         float64 // instances
}

const unknownStart = time.Second

func look(s Snapshot, p Params, r Rates) outlook {
	o := outlook{
		tick: p.Tick.Seconds(), work: r.hold(p.Tick), start: s.MeanStart.Seconds(), waited: s.OldestWait.Seconds(),
		waiting: float64(max(0, s.Waiting())), present: s.present(), each: float64(max(1, s.Concurrency)),
		created: float64(s.Created), creating: float64(s.Creating),
	}
	if o.start <= 0 {
		o.start = unknownStart.Seconds()
		if s.Created == 0 {
			o.start = max(o.start, o.waited)
		}
	}
	o.start = max(o.start, o.tick)
	return o
}

func (o outlook) total() float64 { return o.created + o.creating }

// ramp doubles while it is unknown how long a call takes.
func (o outlook) ramp() int {
	double := max(o.tick, o.start/5)
	return int(min(math.Exp2(math.Floor(o.waited/double)), math.Ceil(o.present/o.each), unlimited))
}

func (o outlook) patience() float64 {
	return RTick*o.tick + min(RDMax, RD*o.work) + RS*max(0, o.start-S0)
}

func (o outlook) evidence() float64 {
	return min(o.tick, TFloor*(o.patience()-RTick*o.tick))
}

func (o outlook) headroom(load float64) float64 {
	phi := math.Pow(o.tick/max(o.start, PhiD*o.work), PhiP)
	return phi * (Beta*math.Sqrt(load) + Spare*max(0, 1-2*o.work/o.tick))
}

// slots is how many calls must run at a time if they come at a rate.
func (o outlook) slots(rate, peak float64) (float64, Reason) {
	load := rate * o.work
	coming := o.present + rate*o.start
	if o.created == 0 {
		peak = max(peak, coming)
	}
	phi := math.Pow(o.tick/max(o.start, PhiD*o.work), PhiP)
	spare := phi * Spare * max(0, 1-2*o.work/o.tick)
	need := min(load+o.headroom(load), peak+math.Floor(spare+.5))
	there := o.created + o.creating*o.underway()
	backlog := o.waiting + rate*o.start - there*o.each*o.start/o.work
	if drain := min(load+backlog*o.work/o.patience(), coming); drain > need {
		return drain, ReasonBacklog
	}
	return need, ReasonRate
}

// underway is which part of the start of those on their way is behind them.
func (o outlook) underway() float64 {
	if o.created > 0 {
		return .5
	}
	return min(1, o.waited/o.start)
}

func (o outlook) plan(r Rates) (int, Reason) {
	need, why := o.slots(r.Slow.cautious(o.evidence()), r.Peak)
	if bold, whyBold := o.slots(r.Slow.bold(o.evidence()), r.Peak); bold > Band*o.total()*o.each {
		need, why = bold, whyBold
	}
	return o.instances(need), why
}

func (o outlook) instances(slots float64) int {
	return int(min(unlimited, math.Ceil(max(0, slots-Round)/o.each)))
}

// keep is how many instances are wanted at the least.
func (o outlook) keep(r Rates) int {
	if o.work <= 0 {
		return max(1, o.instances(o.present))
	}
	rate := r.Slow.rate() + math.Sqrt(r.Slow.Calls)/max(o.tick, r.Slow.Span.Seconds())
	load := rate * o.work
	backlog := o.waiting + rate*o.start - o.created*o.each*o.start/o.work
	need := max(load+o.headroom(load), load+backlog*o.work/o.patience())
	return max(1, o.instances(1.5*min(need, o.present+rate*o.start))+1)
}

func (o outlook) surplus(r Rates) int {
	if o.creating == 0 || int(o.total()) <= o.keep(r) {
		return 0
	}
	return r.Surplus + 1
}
