package colocate

import "time"

// Core decides what batch jobs of a node may use.
type Core struct {
	params Params
	jobs   jobList // in the order in which they came

	looked bool // once, since it was stopped
	at     time.Duration
	last   Looked
	load   float64 // cores that latency-critical work used between the last two looks
	wait   float64 // share of the time between them in which it waited

	reserved int
	confined Cores
	// surplus is since when one core too many is reserved, and late since when work waits
	// although all is reserved that it needs, and nothing was done about it.
	surplus, late since
	// quiet is since when nothing waits.
	quiet  since
	giving patience // for cores that return
	thaws  patience
	doubt  doubt
	vain   int // how often something did not help

	out []Effect
}

// since is the beginning of something that goes on.
type since struct {
	on   bool
	from time.Duration
}

// note says whether it goes on at a time.
func (s *since) note(now time.Duration, on bool) {
	if on && !s.on {
		s.from = now
	}
	s.on = on
}

func (s since) lasts(now, length time.Duration) bool { return s.on && now-s.from >= length }

// patience is how long to wait before something is tried again that made work wait the last time.
type patience struct {
	least, most, now time.Duration
	tried            bool
	last             time.Duration
}

func newPatience(p Params) patience {
	return patience{least: p.ThawEvery, most: p.LongestFreeze, now: p.ThawEvery}
}

// attempt notes a try.
func (p *patience) attempt(now time.Duration) { p.tried, p.last = true, now }

// failed notes that work waits: soon after a try, that was the reason.
func (p *patience) failed(now time.Duration) {
	if p.tried && now-p.last <= p.now {
		p.now = min(2*p.now, p.most)
	} else {
		p.now = p.least
	}
	p.tried = false
}

// New returns the core of a node without jobs and latency-critical work.
func New(params Params) (*Core, error) {
	if err := params.Validate(); err != nil {
		return nil, err
	}
	return &Core{params: params, reserved: params.Least, giving: newPatience(params), thaws: newPatience(params), doubt: newDoubt(params)}, nil
}

// Reserved is how many cores are reserved.
func (c *Core) Reserved() int { return c.reserved }

// Frozen is how many jobs are frozen.
func (c *Core) Frozen() int {
	n := 0
	for _, j := range c.jobs {
		if j.frozen {
			n++
		}
	}
	return n
}

// Step applies an event and returns its effects, in order. Times count from any fixed moment and
// must not go back from one step to the next. Events of unknown jobs change nothing.
func (c *Core) Step(now time.Duration, e Event) []Effect {
	c.out = nil
	switch e := e.(type) {
	case Arrived:
		c.onArrived(e)
	case Ended:
		c.onEnded(e.Job)
	case Sampled:
		c.onSampled(now, e)
	case Looked:
		c.onLooked(now, e)
	case Stopped:
		c.onStopped(now)
	}
	c.thawOverdue(now)
	c.arrange(now)
	return c.out
}

func (c *Core) onLooked(now time.Duration, e Looked) {
	passed := now - c.at
	if c.looked && passed <= 0 {
		return
	}
	first, last := !c.looked, c.last
	c.looked, c.at, c.last = true, now, e
	if first {
		c.doubt.total.at = now // what was before is not known
		c.doubt.noteChange()
		return
	}
	used, waited := max(0, e.Usage-last.Usage), min(passed, max(0, e.Waited-last.Waited))
	c.load, c.wait = float64(used)/float64(passed), float64(waited)/float64(passed)
	c.quiet.note(now, !c.params.late(c.wait))
	c.recall(now, used, waited)
	c.reserve(now)
	if c.params.Freeze {
		c.freezeOrThaw(now)
	}
	c.question(now)
}

func (c *Core) onStopped(now time.Duration) {
	c.looked, c.load, c.wait = false, 0, 0
	c.surplus, c.late, c.quiet, c.doubt = since{}, since{}, since{}, newDoubt(c.params)
	c.reserved = c.params.Least
	for _, j := range c.jobs {
		if j.frozen {
			c.thaw(now, j)
		}
	}
}

// reserve reserves the cores that are needed, and gives back those that are not, one at a time.
func (c *Core) reserve(now time.Duration) {
	p := c.params
	want := min(max(c.params.need(c.load), p.Least), p.Most)
	c.late.note(now, c.params.late(c.wait) && c.reserved >= want)
	switch {
	case want > c.reserved && !p.OnWait:
		c.grow(now, want)
	case want > c.reserved && c.params.late(c.wait) && c.room() > 0:
		room := c.room()
		c.doubt.stepping(p, c.level(), 0)
		c.grow(now, c.reserved+min(want-c.reserved, room))
	case p.OnWait && c.late.lasts(now, p.FreezeAfter) && c.reserved < p.Most && c.room() > 0:
		room := c.room()
		c.grow(now, c.reserved+min(c.doubt.stepping(p, c.level(), 1), room, p.Most-c.reserved))
	case p.OnWait && c.reserved > p.Least && !c.doubt.probe.on && c.quiet.lasts(now, c.giving.now):
		c.reserved--
		c.giving.attempt(now)
		c.quiet.from = now
		c.doubt.noteReturn()
	case !p.OnWait:
		c.shrink(now)
	}
}

func (c *Core) grow(now time.Duration, to int) {
	c.reserved = to
	c.surplus, c.late = since{}, since{}
	c.giving.failed(now)
}

// shrink gives a core back once much less has been needed for long.
func (c *Core) shrink(now time.Duration) {
	p := c.params
	c.surplus.note(now, c.reserved > p.Least && c.load <= p.Shrink*float64(c.reserved-1))
	if c.surplus.lasts(now, p.ShrinkAfter) {
		c.reserved--
		c.surplus = since{}
	}
}

// freezeOrThaw freezes a job if work waits for too long although all is reserved that may be, and
// thaws one if nothing waits and there is room.
func (c *Core) freezeOrThaw(now time.Duration) {
	p := c.params
	switch {
	case c.late.lasts(now, p.FreezeAfter) && c.room() > 0:
		c.freezeSome(now)
	case !c.doubt.probe.on && c.quiet.lasts(now, c.thaws.now) && p.need(c.load)+1 <= p.Cores && (!c.thaws.tried || now-c.thaws.last >= c.thaws.now):
		if j := c.jobs.frozenLongest(); j != nil {
			c.thaws.attempt(now)
			c.thaw(now, j)
			c.doubt.noteReturn()
		}
	}
}

// freezeSome freezes the jobs that use most: one at first.
func (c *Core) freezeSome(now time.Duration) {
	j := c.jobs.largest(now)
	if j == nil {
		return
	}
	if c.Frozen() == 0 {
		c.doubt.climb.stride = 0
	}
	c.thaws.failed(now)
	c.late.from = now
	room := c.room()
	for n := min(c.doubt.stepping(c.params, c.level(), 1), room); n > 0 && j != nil; n-- {
		c.freeze(now, j)
		j = c.jobs.largest(now)
	}
}
