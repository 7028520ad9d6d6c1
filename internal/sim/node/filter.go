package node

import (
	"math"
	"time"
)

// Filter is SFS as published: each core has a worker, which gives the next call of one queue
// real-time priority for a slice. All other calls share what the workers leave.
type Filter struct {
	// Slice is used until the first Window gaps between arrivals were seen, and after that
	// their mean, times the cores, but at least Least. Window 0 keeps it as it is.
	Slice, Least time.Duration
	Window       int
	// Bypass is how many slices a call waits at most before it is left to share (O in the
	// paper); 0 for any number.
	Bypass float64
	// Poll is how often a worker looks whether its call sleeps; 0 for never. A call that
	// is seen asleep leaves its worker, and comes back with what is left of its slice.
	Poll time.Duration
	// Kernel shares the core; nil for ideal sharing.
	Kernel *Kernel
	// Observe is called with each new slice; it may be nil.
	Observe func(now, slice time.Duration)
}

// PublishedFilter has the paper's parameters; the first slice and the minimum are those of the
// authors' code.
func PublishedFilter() Filter {
	return Filter{Slice: 20 * time.Millisecond, Least: 6 * time.Millisecond, Window: 100, Bypass: 3, Poll: 4 * time.Millisecond}
}

type filter struct {
	Filter
	w            *world
	cores        int
	priority, cf station
	free         int
	queue        []*filtered
	calls        map[*job]*filtered
	slice        float64
	last, gaps   float64
	seen         int
}

// filtered is what SFS knows of a call.
type filtered struct {
	*job
	enqueued float64
	left     float64 // of its slice; negative before the first
	picked   float64
	round    int // how often it was picked
	worker   bool
	queued   bool
}

func (f Filter) start(w *world, cores int) (decisions, error) {
	s := &filter{Filter: f, w: w, cores: cores, free: cores, calls: map[*job]*filtered{}, slice: f.Slice.Seconds(), last: math.NaN()}
	if f.Kernel != nil {
		k, err := f.Kernel.core(w, cores)
		if err != nil {
			return nil, err
		}
		s.priority, s.cf = k.favoured, k.normal
		return s, nil
	}
	g := newGroup(float64(cores), 2)
	w.groups = append(w.groups, g)
	s.priority, s.cf = g.bands[0], g.bands[1]
	return s, nil
}

func (f *filter) add(j *job) {
	f.learn()
	c := &filtered{job: j, left: -1}
	f.calls[j] = c
	// The process starts at once, and computes if the workers leave something.
	f.w.launch(j, f.cf)
	f.enqueue(c)
}

// learn takes the gap since the last arrival into account.
func (f *filter) learn() {
	gap := f.w.now - f.last
	f.last = f.w.now
	if f.Window == 0 || math.IsNaN(gap) {
		return
	}
	f.gaps += gap
	f.seen++
	if f.seen == f.Window {
		f.slice = max(f.Least.Seconds(), f.gaps/float64(f.Window)*float64(f.cores))
		f.gaps, f.seen = 0, 0
		if f.Observe != nil {
			f.Observe(ofSeconds(f.w.now), ofSeconds(f.slice))
		}
	}
}

func (f *filter) enqueue(c *filtered) {
	c.enqueued, c.queued = f.w.now, true
	f.queue = append(f.queue, c)
	f.fill()
}

func (f *filter) fill() {
	for f.free > 0 && len(f.queue) > 0 {
		c := f.queue[0]
		f.queue = f.queue[1:]
		c.queued = false
		switch {
		case c.over:
		case f.Bypass > 0 && f.w.now-c.enqueued >= f.Bypass*f.slice:
			c.left = 0
		default:
			f.pick(c)
		}
	}
}

func (f *filter) pick(c *filtered) {
	f.free--
	if c.left < 0 {
		c.left = f.slice
	}
	c.picked, c.worker = f.w.now, true
	c.round++
	f.w.move(c.job, f.priority)
	round := c.round
	f.w.after(c.left, func() {
		if c.worker && c.round == round && !c.ending() {
			c.left = 0
			f.dismiss(c)
		}
	})
	if !c.computes() {
		f.lookAfter(c)
	}
}

// dismiss ends the call's time with its worker.
func (f *filter) dismiss(c *filtered) {
	c.worker = false
	f.free++
	f.w.move(c.job, f.cf)
	f.fill()
}

func (f *filter) stop(j *job) {
	if c := f.calls[j]; c.worker {
		c.worker = false
		f.free++
		f.fill()
	}
	delete(f.calls, j)
}

// block waits for the worker's next look at its call.
func (f *filter) block(j *job) {
	if c := f.calls[j]; c != nil && c.worker {
		f.lookAfter(c)
	}
}

// lookAfter has the worker see at its next look that the call sleeps.
func (f *filter) lookAfter(c *filtered) {
	if f.Poll == 0 {
		return
	}
	every, round := f.Poll.Seconds(), c.round
	looks := math.Floor((f.w.now-c.picked)/every+1e-9) + 1
	f.w.after(c.picked+looks*every-f.w.now, func() {
		if c.worker && c.round == round && !c.over && !c.computes() {
			c.left = max(0, c.left-(f.w.now-c.picked))
			f.dismiss(c)
		}
	})
}

// wake queues a call that has something of its slice left.
func (f *filter) wake(j *job) {
	if c := f.calls[j]; c != nil && !c.worker && !c.queued && c.left > 0 {
		f.enqueue(c)
	}
}
