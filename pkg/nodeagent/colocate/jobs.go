package colocate

import (
	"cmp"
	"slices"
	"time"
)

// block is where a job runs.
type block int

const (
	queued block = iota // it has not begun
	shared
	small
	large
)

// job is a batch job.
type job struct {
	Arrived
	in     block
	on     Cores
	frozen bool
	from   time.Duration // since when it is frozen
	// safe is until when it must not be frozen again.
	safe time.Duration

	sampled bool
	at      time.Duration
	usage   time.Duration
	rate    float64 // cores that it used between its last two samples
}

// jobList are jobs in the order in which they came.
type jobList []*job

func (l jobList) byID(id JobID) *job {
	for _, j := range l {
		if j.Job == id {
			return j
		}
	}
	return nil
}

func (c *Core) onArrived(e Arrived) {
	if c.jobs.byID(e.Job) == nil {
		e.Threads = max(1, e.Threads)
		c.jobs = append(c.jobs, &job{Arrived: e})
	}
}

func (c *Core) onEnded(id JobID) {
	if j := c.jobs.byID(id); j != nil && j.in != queued {
		c.doubt.ended = true
	}
	c.jobs = slices.DeleteFunc(c.jobs, func(j *job) bool { return j.Job == id })
}

func (c *Core) onSampled(now time.Duration, e Sampled) {
	j := c.jobs.byID(e.Job)
	if j == nil || j.sampled && now <= j.at {
		return
	}
	if j.sampled {
		j.rate = float64(max(0, e.Usage-j.usage)) / float64(now-j.at)
	}
	j.sampled, j.at, j.usage = true, now, e.Usage
}

func (c *Core) freeze(now time.Duration, j *job) {
	j.frozen, j.from = true, now
	c.out = append(c.out, Freeze{j.Job})
}

func (c *Core) thaw(now time.Duration, j *job) {
	j.frozen, j.safe = false, now+c.params.ThawEvery
	c.out = append(c.out, Thaw{j.Job})
}

// stoppable says whether a job runs and may be frozen.
func (j *job) stoppable() bool { return j.in != queued && !j.frozen && !j.Unstoppable }

// largest is the job that runs and uses most; of equal ones the oldest.
func (l jobList) largest(now time.Duration) *job {
	var most *job
	for _, j := range l {
		if j.stoppable() && now >= j.safe && (most == nil || j.rate > most.rate) {
			most = j
		}
	}
	return most
}

// frozenInOrder are the jobs that are frozen, in the order in which they were.
func (l jobList) frozenInOrder() []*job {
	var frozen []*job
	for _, j := range l {
		if j.frozen {
			frozen = append(frozen, j)
		}
	}
	slices.SortStableFunc(frozen, func(a, b *job) int { return cmp.Compare(a.from, b.from) })
	return frozen
}

func (l jobList) frozenLongest() *job {
	if frozen := l.frozenInOrder(); len(frozen) > 0 {
		return frozen[0]
	}
	return nil
}

// thawOverdue thaws jobs that have been frozen for as long as one may be.
func (c *Core) thawOverdue(now time.Duration) {
	for _, j := range c.jobs {
		if c.params.Freeze && j.frozen && now-j.from >= c.params.LongestFreeze {
			c.thaw(now, j)
			c.doubt.probe.on = false // it would compare something else
			c.doubt.noteReturn()
		}
	}
}

// arrange starts jobs, and lets all that run have the cores of their block.
func (c *Core) arrange(now time.Duration) {
	if c.params.Layout == Blocks {
		c.arrangeBlocks(now)
		return
	}
	c.jobs.startShared(c.params.Threads)
	rest := Cores{First: c.reserved, N: c.params.Cores - c.reserved}
	for _, j := range c.jobs {
		if j.in == shared {
			c.place(j, rest)
		}
	}
}

// startShared starts jobs until enough threads run.
func (l jobList) startShared(most int) {
	threads := 0
	var waiting []*job
	for _, j := range l {
		if j.in == queued {
			waiting = append(waiting, j)
		} else {
			threads += j.Threads
		}
	}
	slices.SortStableFunc(waiting, func(a, b *job) int { return cmp.Compare(a.Expected, b.Expected) })
	for _, j := range waiting {
		if most > 0 && threads >= most {
			return
		}
		j.in = shared
		threads += j.Threads
	}
}

func (c *Core) place(j *job, on Cores) {
	if j.on != on {
		j.on = on
		c.out = append(c.out, Place{j.Job, on})
	}
}

// arrangeBlocks is the report's: each block takes the next job of the queue that it prefers. An
// empty large block takes the small block's job if no other is left. A small block that has nothing
// left to run is latency-critical work's.
func (c *Core) arrangeBlocks(now time.Duration) {
	p := c.params
	hasLarge := p.Cores > p.Most
	if hasLarge {
		c.jobs.startIn(large, Long, Medium, Short)
	}
	if c.reserved == p.Least {
		c.jobs.startIn(small, Short, Medium, Long)
	}
	if j := c.jobs.inBlock(small); j != nil && hasLarge && c.jobs.inBlock(large) == nil {
		j.in = large
	}
	inSmall := c.jobs.inBlock(small)
	has := c.reserved
	if inSmall == nil && (c.jobs.inBlock(large) != nil || !hasLarge) {
		has = p.Most
	}
	if j := inSmall; j != nil && !j.frozen && has > p.Least {
		c.freeze(now, j)
	}
	if to := (Cores{First: 0, N: has}); to != c.confined {
		c.confined = to
		c.out = append(c.out, Confine{to})
	}
	for _, j := range c.jobs {
		switch j.in {
		case small:
			c.place(j, Cores{First: p.Least, N: p.Most - p.Least})
		case large:
			c.place(j, Cores{First: p.Most, N: p.Cores - p.Most})
		}
		if j.frozen && (j.in == large || has == p.Least) {
			c.thaw(now, j)
		}
	}
}

// startIn starts a job in an empty block.
func (l jobList) startIn(b block, prefer ...Length) {
	if l.inBlock(b) != nil {
		return
	}
	for _, length := range prefer {
		for _, j := range l {
			if j.in == queued && j.Length == length {
				j.in = b
				return
			}
		}
	}
}

func (l jobList) inBlock(b block) *job {
	for _, j := range l {
		if j.in == b {
			return j
		}
	}
	return nil
}
