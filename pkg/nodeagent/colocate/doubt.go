package colocate

import (
	"math"
	"slices"
	"time"
)

// Waits do not say for whom. So steps against batch work are doubted until some of what is kept back
// has been given back, and work was seen to wait longer for that.
//
// What is kept back is a level: first the cores that are reserved, then the jobs that are frozen, in
// the order in which they were.

// reading is what latency-critical work had used and waited at a time, or in one.
type reading struct{ at, used, waited time.Duration }

// since is what work used and waited after an earlier reading.
func (t reading) since(from reading) reading {
	return reading{t.at - from.at, t.used - from.used, t.waited - from.waited}
}

// plus is what work used and waited in two times.
func (t reading) plus(other reading) reading {
	return reading{t.at + other.at, t.used + other.used, t.waited + other.waited}
}

// share is the share of the time in which work waited.
func (t reading) share() float64 { return float64(t.waited) / float64(max(t.at, 1)) }

// load is how many cores it used.
func (t reading) load() float64 { return float64(t.used) / float64(max(t.at, 1)) }

// perUse is how long it waited for each second of processor time.
func (t reading) perUse() float64 {
	const leastLoad = 0.1 // cores; below, twice as much is not much
	return t.share() / max(t.load(), leastLoad)
}

// doubt is what is known of whether steps help.
type doubt struct {
	total reading
	// changed is when the level changed the last time, or with level 0 when work began to wait;
	// waited says that a look has found it waiting since then, and ended that a job has ended.
	changed reading
	waited  bool
	ended   bool
	climb   climb
	probe   probe
	search  search
	rest    rest
	// prove is for how long something may be kept back beside waits before the next probe.
	prove time.Duration
}

// climb is a series of steps, from a level and for which share of the time work waited there.
type climb struct {
	on     bool
	base   int
	before float64
	// last is for which share of the time work waited before the last step, and stride how large
	// that step was.
	last   float64
	stride int
	// undecided says that a probe has ended without a verdict, and no step was taken since.
	undecided bool
}

// probe looks whether work waits longer at a lower level. It changes between the levels, as what is
// asked of the work changes its waits, too, and a change of that may come together with one of the level,
// but not each time.
type probe struct {
	on bool
	to int
	// phase counts changes: in phases with an even number what it is about is kept back. kept and given
	// are what work used and waited in those, and in the others.
	phase       int
	kept, given reading
	// all says that nothing more could be kept back in the last of its phases.
	all bool
	// ended says that a job has ended in one of its phases: they differ by more than the level.
	ended bool
	// What it has given back.
	reserved int
	jobs     []JobID
}

// probePhases is how many phases a probe has.
const probePhases = 4

// phase is how long each takes, so that all is given back for JudgeFor.
func (p Params) phase() time.Duration { return p.JudgeFor / (probePhases / 2) }

// search looks for the lowest level that helps as much as high does: low does not.
type search struct{ low, high int }

// searchFrom is how many times ProveEvery something must have proven itself before a search: twice in a
// row, since a wait that falls by itself may look like a proof.
const searchFrom = 4

func (s search) on() bool { return s.high-s.low > 1 }

// rest is a time in which nothing above a level is kept back, because that did not help.
type rest struct {
	on      bool
	ceiling int
	from    time.Duration
	length  time.Duration
	verdict reading // what work used and waited in the probe
	window  reading
	next    time.Duration // how long the next one takes
}

func newDoubt(p Params) doubt { return doubt{prove: p.ProveEvery, rest: rest{next: p.Rest}} }

// Vain is how often some of what was kept back was given back because it had changed nothing.
func (c *Core) Vain() int { return c.vain }

// level is how many cores and jobs are kept back because of waits.
func (c *Core) level() int { return c.params.aside(c.reserved) + c.Frozen() }

// aside is how many of some reserved cores are so because of waits.
func (p Params) aside(reserved int) int {
	if !p.OnWait {
		return 0
	}
	return reserved - p.Least
}

// room is how many cores and jobs more may be kept back because of waits. There is none in a probe, and until
// a look has seen how work waits at the level after it.
func (c *Core) room() int {
	if d := &c.doubt; d.probe.on || d.changed.at == d.total.at {
		return 0
	}
	return c.doubt.above(c.level(), c.jobs)
}

// above is how many more than a level may be kept back once no probe goes on.
func (d *doubt) above(level int, jobs jobList) int {
	switch {
	case len(jobs) == 0:
		return 0
	case d.rest.on:
		return max(0, d.rest.ceiling-level)
	}
	return math.MaxInt
}

// less says whether a share of waiting is so much smaller than another that what was done between
// them has helped.
func (p Params) less(wait, than float64) bool { return wait <= (1-p.Helped)*than }

// recall takes in a look, and goes on with what was begun to settle a doubt.
func (c *Core) recall(now, used, waited time.Duration) {
	d := &c.doubt
	d.total = reading{now, d.total.used + used, d.total.waited + waited}
	d.waited = d.waited || c.params.late(c.wait)
	switch {
	case d.probe.on:
		c.goOn(now)
	case d.rest.on:
		d.endRest(now, c.params)
	}
	if c.level() == 0 && !d.probe.on && c.quiet.lasts(now, c.params.FreezeAfter) {
		d.noteChange()
	}
	if c.quiet.lasts(now, c.params.LongestRest) {
		d.rest.next = c.params.Rest
	}
}

// noteChange notes that more or less is kept back from now on.
func (d *doubt) noteChange() { d.changed, d.waited, d.ended = d.total, false, false }

// noteReturn notes that something was given back because nothing waits.
func (d *doubt) noteReturn() {
	d.noteChange()
	d.climb, d.search = climb{}, search{}
}

// stepping notes that a step from a level is about to be taken, and returns how large it shall be: twice
// the last one if that has not helped. Batch jobs that are left take what others do not use any more, so
// to stop a few may change nothing where to stop all does. The first one of a climb is given.
func (d *doubt) stepping(p Params, level, first int) int {
	wait := d.total.since(d.changed).share()
	switch {
	case !d.climb.on:
		d.climb = climb{on: true, base: level, before: wait, stride: first}
	case p.JudgeFor == 0 || p.less(wait, d.climb.last):
		d.climb.stride = 1
	default:
		d.climb.stride = max(1, 2*d.climb.stride)
	}
	d.climb.last, d.climb.undecided, d.search = wait, false, search{}
	d.noteChange()
	return d.climb.stride
}

// exhausted says that nothing more can be kept back.
func (c *Core) exhausted() bool {
	if c.doubt.above(c.level(), c.jobs) == 0 {
		return true
	}
	if c.params.OnWait && c.reserved < c.params.Most {
		return false
	}
	return !c.params.Freeze || !slices.ContainsFunc(c.jobs, (*job).stoppable)
}

// question begins a probe if something is kept back and work waits nevertheless. If it waits as before a
// climb, that did not help, it seems. If something helps, half as much may do. And once in a while all
// must prove itself.
func (c *Core) question(now time.Duration) {
	p, d := c.params, &c.doubt
	if p.JudgeFor == 0 || d.probe.on || len(c.jobs) == 0 || c.level() == 0 || !d.waited {
		return
	}
	during := d.total.since(d.changed).share()
	passed := now - d.changed.at
	inVain := d.climb.on && c.exhausted() && !p.less(during, d.climb.before)
	switch {
	case passed < p.phase() || passed < p.JudgeFor && !inVain:
	case inVain: // what was seen since the last step is the first phase
		d.probe = probe{on: true, to: d.climb.base}
		c.goOn(now)
	case d.search.on():
		d.beginProbe((d.search.low + d.search.high) / 2)
	case passed >= d.prove:
		d.beginProbe(0)
	}
}

// beginProbe begins a probe of a lower level.
func (d *doubt) beginProbe(to int) {
	d.probe = probe{on: true, to: to}
	d.noteChange()
}

// goOn takes a phase of a probe in once it is over, and begins the next one or ends the probe.
func (c *Core) goOn(now time.Duration) {
	d := &c.doubt
	if now-d.changed.at < c.params.phase() {
		return
	}
	phase := d.total.since(d.changed)
	d.probe.ended = d.probe.ended || d.ended
	if d.probe.phase%2 == 0 {
		d.probe.kept, d.probe.all = d.probe.kept.plus(phase), c.exhausted()
		c.giveBack(now)
	} else {
		d.probe.given = d.probe.given.plus(phase)
		switch {
		case d.probe.phase+1 == probePhases:
			c.judge(now)
			return
		case d.probe.given.share() <= c.params.MaxWait: // nothing to keep batch back for
			d.probe.phase++
		default:
			c.takeBack(now)
		}
	}
	d.probe.phase++
	d.noteChange()
}

// giveBack gives back what is kept back above the level of the probe.
func (c *Core) giveBack(now time.Duration) {
	b := &c.doubt.probe
	b.reserved, b.jobs = c.reserved, nil
	keep := max(0, b.to-c.params.aside(c.reserved))
	if c.params.OnWait {
		c.reserved = min(c.reserved, c.params.Least+b.to)
	}
	for i, j := range c.jobs.frozenInOrder() {
		if i >= keep {
			b.jobs = append(b.jobs, j.Job)
			c.thaw(now, j)
		}
	}
}

// takeBack keeps back again what the probe has given back.
func (c *Core) takeBack(now time.Duration) {
	b := &c.doubt.probe
	if c.params.OnWait {
		c.reserved = b.reserved
	}
	for _, id := range b.jobs {
		if j := c.jobs.byID(id); j != nil && j.stoppable() {
			c.freeze(now, j)
		}
	}
}

// judge ends a probe. If work waited longer while less was kept back, that had helped. If it did not wait
// for too long then, there is nothing to judge, and if a job has ended, only the next probe shows. And if it waited for too long while more could have been kept
// back, only the next steps show whether that helps. A wait that is too short for another step is judged the next time.
func (c *Core) judge(now time.Duration) {
	p, d := c.params, &c.doubt
	given := d.probe.given
	d.probe.on, d.rest.window = false, d.total
	climbed, undecided := d.climb.on, d.climb.undecided
	d.climb = climb{}
	switch {
	case given.share() <= p.MaxWait:
		d.search = search{}
	case d.probe.ended:
		d.search = search{}
		c.takeBack(now)
	case p.less(d.probe.kept.share(), given.share()):
		c.resume(now)
	case d.probe.kept.share() > p.MaxWait && !d.probe.all && !undecided:
		c.takeBack(now)
		d.climb = climb{on: true, base: d.probe.to, before: given.share(), last: d.probe.kept.share(), undecided: true}
	default:
		c.vain++
		d.search.high = d.probe.to
		length, next := p.Rest, d.rest.next
		if climbed || d.probe.to == 0 {
			length, next = next, min(2*next, p.LongestRest)
		}
		d.rest = rest{on: true, ceiling: d.probe.to, from: now, length: length, verdict: given, window: d.total, next: next}
		if d.probe.to == 0 {
			d.prove, d.search = p.ProveEvery, search{}
		}
	}
	d.noteChange()
}

// proveAfter bounds the time until a probe, so that its first phase is over before a job that is frozen goes on in
// any case.
func (p Params) proveAfter(long time.Duration) time.Duration {
	return max(p.ProveEvery, min(long, p.LongestFreeze-p.JudgeFor))
}

// resume keeps back again what a probe has given back, because that helped.
func (c *Core) resume(now time.Duration) {
	p, d := c.params, &c.doubt
	if d.probe.to == 0 {
		d.prove, d.rest.next = p.proveAfter(2*d.prove), max(d.rest.next/2, p.Rest)
	}
	c.takeBack(now)
	switch {
	case d.probe.to == 0 && d.prove >= searchFrom*p.ProveEvery:
		d.search = search{low: 0, high: c.level()}
	case d.search.on():
		d.search.low = d.probe.to
	}
	c.late, c.quiet = since{}, since{}
}

// restPart is the part of a rest that passes even if there is a new cause, so that figures that change
// by themselves do not end all rests.
const restPart = 4

// endRest ends a rest that is over, or that a new cause ends.
func (d *doubt) endRest(now time.Duration, p Params) {
	r := &d.rest
	rested := now - r.from
	if rested >= r.length {
		r.on = false
		return
	}
	if now-r.window.at < p.JudgeFor {
		return
	}
	current := d.total.since(r.window)
	r.window = d.total
	if rested >= r.length/restPart && (current.beyond(r.verdict, p) || r.verdict.beyond(current, p)) {
		r.on = false
	}
}

// beyond says whether work waited at least NewCause times as long as in another reading, by the time and
// for what it used: more requests alone raise only the first. Waits up to MaxWait count as MaxWait.
func (t reading) beyond(other reading, p Params) bool {
	return t.share() >= p.NewCause*max(other.share(), p.MaxWait) && t.perUse() >= p.NewCause*other.perUse()
}
