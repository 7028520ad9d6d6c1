package node

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/windlass-dev/windlass/pkg/nodeagent/colocate"
)

// BatchJob is work that is there from the start.
type BatchJob struct {
	Name string
	// Threads is how many cores it can use.
	Threads int
	Work    time.Duration
	Length  colocate.Length
}

// Others are programs beside a service and batch jobs, on all cores alike, that no controller knows.
type Others struct {
	// Cores is on how many they compute.
	Cores float64
	// Late is the share of the time in which they make a core Stall late for the service.
	Late float64
}

// Colocation is a service and batch jobs on a node, and a controller.
type Colocation struct {
	Service Service
	// Load is how many requests a second come in each interval; after the last, the first again.
	Load []float64
	// Every is the length of an interval, a whole number of slots of 10 ms.
	Every time.Duration
	Jobs  []BatchJob
	// Others are programs in the normal band.
	Others Others
	// Control are the controller's params. Look is how often it looks, and From when first.
	Control    colocate.Params
	Look, From time.Duration
	// Points is how many intervals count for the objective.
	Points int
	// For is how long the simulation lasts; 0 until the points and the jobs are over.
	For time.Duration
}

// Colocated is what came out.
type Colocated struct {
	// Violations is in how many intervals more than 5 % of the requests were late.
	Violations int
	// Late is the share of requests that were late in the intervals that count.
	Late float64
	// Makespan is when the last job was over.
	Makespan time.Duration
	// Work is the processor time that jobs got.
	Work time.Duration
	// Spans are how long each job took, from its start.
	Spans []time.Duration
	// Moves is how often the number of reserved cores changed, and Frozen how long jobs were.
	Moves  int
	Frozen time.Duration
	// Vain is how often the controller gave back what it had kept back for nothing.
	Vain int
}

const (
	slot = 10 * time.Millisecond
	// lateAllowed is the share of requests that may be late: the objective is of p95.
	lateAllowed = 0.05
	// longestColocation bounds a simulation in which jobs get nothing.
	longestColocation = 24 * time.Hour
)

// batch is a job that runs.
type batch struct {
	BatchJob
	on     colocate.Cores
	frozen bool
	left   float64 // seconds of work
	rate   float64 // cores that it has in this slot
	began  time.Duration
	over   bool
}

func (b *batch) runs() bool { return !b.over && !b.frozen && b.on.N > 0 }

// colocation is a simulation.
type colocation struct {
	Colocation
	core *colocate.Core
	now  time.Duration
	jobs []*batch
	// byThreads are the jobs that run in this slot, those with the fewest threads first.
	byThreads []*batch
	// confined is how many cores the service has; 0 for all.
	confined int
	seen     colocate.Looked
	open     float64 // requests beyond a steady state
	// asked and late are requests of this interval, and allAsked and allLate of those that count.
	asked, late, allAsked, allLate float64
	result                         Colocated
}

// Colocate simulates a colocation, in slots of 10 ms.
func Colocate(of Colocation) (Colocated, error) {
	switch err := of.Service.check(); {
	case err != nil:
		return Colocated{}, fmt.Errorf("node: the colocation %w", err)
	case len(of.Load) == 0 || of.Every < slot || of.Every%slot != 0:
		return Colocated{}, fmt.Errorf("node: the colocation has %d intervals of %s; there must be some, each of some slots of %s", len(of.Load), of.Every, slot)
	case !(of.Others.Cores >= 0 && of.Others.Cores < float64(of.Control.Cores)) || !(of.Others.Late >= 0 && of.Others.Late <= 1):
		return Colocated{}, fmt.Errorf("node: the colocation has others on %g of %d cores, late for a share of %g", of.Others.Cores, of.Control.Cores, of.Others.Late)
	case of.Look < slot || of.Look%slot != 0 || of.From%slot != 0:
		return Colocated{}, fmt.Errorf("node: the colocation looks each %s from %s on; both must be slots of %s", of.Look, of.From, slot)
	}
	core, err := colocate.New(of.Control)
	if err != nil {
		return Colocated{}, fmt.Errorf("node: %w", err)
	}
	c := &colocation{Colocation: of, core: core, result: Colocated{Spans: make([]time.Duration, len(of.Jobs))}}
	for i, j := range of.Jobs {
		c.jobs = append(c.jobs, &batch{BatchJob: j, left: j.Work.Seconds()})
		c.tell(colocate.Arrived{Job: colocate.JobID(i), Threads: j.Threads, Expected: j.Work, Length: j.Length})
	}
	for !c.over() {
		c.pass()
	}
	c.result.Late, c.result.Vain = c.allLate/max(1, c.allAsked), core.Vain()
	return c.result, nil
}

func (c *colocation) over() bool {
	if c.For > 0 {
		return c.now >= c.For
	}
	left := slices.ContainsFunc(c.jobs, func(b *batch) bool { return !b.over })
	return c.now >= time.Duration(c.Points)*c.Every && !left || c.now >= longestColocation
}

// tell steps the controller and does what it says.
func (c *colocation) tell(e colocate.Event) {
	before := c.core.Reserved()
	for _, effect := range c.core.Step(c.now, e) {
		switch e := effect.(type) {
		case colocate.Confine:
			c.confined = e.To.N
		case colocate.Place:
			b := c.jobs[e.Job]
			if b.on.N == 0 {
				b.began = c.now
			}
			b.on = e.On
		case colocate.Freeze:
			c.jobs[e.Job].frozen = true
		case colocate.Thaw:
			c.jobs[e.Job].frozen = false
		}
	}
	if c.core.Reserved() != before {
		c.result.Moves++
	}
}

// pass is one slot: a look if it is time, requests, and work.
func (c *colocation) pass() {
	if c.now >= c.From && (c.now-c.From)%c.Look == 0 {
		c.tellUsage()
	}
	at := c.place()
	rate := c.Load[int(c.now/c.Every)%len(c.Load)]
	used := c.serve(at, rate)
	c.compute(at, used, rate)
	c.now += slot
	if c.now%c.Every == 0 {
		if c.now <= time.Duration(c.Points)*c.Every {
			c.allAsked, c.allLate = c.allAsked+c.asked, c.allLate+c.late
			if c.late > lateAllowed*c.asked {
				c.result.Violations++
			}
		}
		c.asked, c.late = 0, 0
	}
}

func (c *colocation) tellUsage() {
	for i, b := range c.jobs {
		if c.Control.Freeze && b.runs() {
			c.tell(colocate.Sampled{Job: colocate.JobID(i), Usage: b.Work - ofSeconds(b.left)})
		}
	}
	c.tell(c.seen)
}

// place is where the service computes. Its threads take cores that are free before those on
// which batch computes.
func (c *colocation) place() place {
	if c.confined > 0 {
		return place{cores: c.confined}
	}
	at := place{cores: c.Control.Cores}
	reserved, threads := c.core.Reserved(), 0
	for _, b := range c.jobs {
		if b.runs() {
			threads += min(b.Threads, b.on.N)
		}
	}
	if reserved >= c.Service.Threads {
		return at
	}
	pool := c.Control.Cores - reserved
	at.exposed = min(1, float64(threads)/float64(pool))
	if reserved > 0 {
		// A request is on a shared core if it comes while those reserved are busy.
		rate := c.Load[int(c.now/c.Every)%len(c.Load)]
		at.exposed *= min(1, rate*c.Service.Time.Seconds()/float64(reserved))
	}
	return at
}

// serve answers the requests of a slot and returns how many cores that took.
func (c *colocation) serve(at place, rate float64) float64 {
	s, length := c.Service, slot.Seconds()
	capacity := s.capacity(at)
	c.open = max(0, c.open+(rate-capacity)*length)
	c.open = min(c.open, float64(s.Outstanding))
	requests := rate * length
	c.asked += requests
	late := s.late(at, rate, c.open)
	if s.Stall > s.Objective {
		late += (1 - late) * c.Others.Late
	}
	c.late += requests * late
	used := min(rate, capacity) * s.time(at)
	if c.open > 0 {
		used = float64(s.servers(at))
	}
	c.seen.Usage += time.Duration(used * float64(slot))
	ofBatch := s.Late * at.exposed
	c.seen.Waited += time.Duration((ofBatch + (1-ofBatch)*c.Others.Late) * float64(slot))
	return used
}

// compute gives jobs what the service leaves of their cores, in equal parts.
func (c *colocation) compute(at place, used, rate float64) {
	c.byThreads = c.byThreads[:0]
	for _, b := range c.jobs {
		if b.frozen && !b.over {
			c.result.Frozen += slot
		}
		if b.runs() {
			c.byThreads = append(c.byThreads, b)
			b.rate = float64(min(b.Threads, b.on.N)) * c.left()
		}
	}
	if c.Control.Layout == colocate.Shared {
		free := float64(c.Control.Cores-c.core.Reserved())*c.left() - at.exposed*(used+rate*c.Service.Switch.Seconds())
		slices.SortStableFunc(c.byThreads, func(a, b *batch) int { return cmp.Compare(a.Threads, b.Threads) })
		share(c.byThreads, max(0, free))
	}
	for _, b := range c.byThreads {
		c.advance(b)
	}
}

// left is which part of each core others leave.
func (c *colocation) left() float64 { return 1 - c.Others.Cores/float64(c.Control.Cores) }

// share gives jobs, those with the fewest threads first, equal parts of some cores, but none more
// than it has threads.
func share(byThreads []*batch, cores float64) {
	for i, b := range byThreads {
		b.rate = min(float64(b.Threads), cores/float64(len(byThreads)-i))
		cores -= b.rate
	}
}

func (c *colocation) advance(b *batch) {
	got := min(b.left, b.rate*slot.Seconds())
	b.left -= got
	c.result.Work += ofSeconds(got)
	if b.left > 0 {
		return
	}
	b.over = true
	i := slices.Index(c.jobs, b)
	c.result.Spans[i] = c.now + slot - b.began
	c.result.Makespan = c.now + slot
	c.tell(colocate.Ended{Job: colocate.JobID(i)})
}
