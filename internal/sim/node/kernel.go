package node

import (
	"errors"
	"slices"
	"time"
)

// Kernel is one core as Linux shares it (EEVDF): one call has the core at a time, and not each a part of every moment. Of the
// calls that have had no more than their share, the one with the earliest deadline is next. As a policy it has no other
// rule; Tickets and Filter run on it if they have one.
type Kernel struct {
	// Slice is what a call computes before another one gets the core, unless it ends.
	Slice time.Duration
	// Low is the weight of a call in the low band. That of others is 1.
	Low float64
}

// kernel is the core in the simulation.
type kernel struct {
	w     *world
	slice float64
	// core computes the call that has it, now.
	core *band
	now  *entity
	// counted is up to when the virtual time of now counts.
	counted float64
	// looks is how many looks were planned. Only the last of them counts.
	looks int
	queue []*entity // all that could compute, in the order in which they came
	of    map[*job]*entity
	// favoured is above all others, normal and low share by weight.
	favoured, normal, low *standing
}

// standing is how the kernel treats a call.
type standing struct {
	kernel *kernel
	above  bool
	weight float64
}

// entity is a call at the kernel. Virtual times are processor times, divided by weights.
type entity struct {
	*job
	*standing
	virtual, deadline float64
}

func (k Kernel) core(w *world, cores int) (*kernel, error) {
	switch {
	case cores != 1:
		return nil, errors.New("node: the kernel is a model of one core only")
	case k.Slice <= 0 || !(k.Low > 0 && k.Low <= 1):
		return nil, errors.New("node: the kernel's slice must be more than 0, and the low weight more than 0 and at most 1")
	}
	g := newGroup(1, 1)
	w.groups = append(w.groups, g)
	s := &kernel{w: w, slice: k.Slice.Seconds(), core: g.bands[0], of: map[*job]*entity{}}
	s.favoured = &standing{kernel: s, above: true, weight: 1}
	s.normal = &standing{kernel: s, weight: 1}
	s.low = &standing{kernel: s, weight: k.Low}
	return s, nil
}

func (k Kernel) start(w *world, cores int) (decisions, error) {
	s, err := k.core(w, cores)
	return s, err
}

func (k *kernel) add(j *job) { k.w.launch(j, k.normal) }
func (*kernel) stop(*job)    {}

// enter lets a call compute beside the others. It counts as one that has had exactly its share. It takes the core at once
// from calls of less weight; from others it may when they have used up their slice.
func (s *standing) enter(j *job) {
	k := s.kernel
	k.count()
	at := k.average()
	e := &entity{job: j, standing: s, virtual: at, deadline: at + k.slice/s.weight}
	k.queue = append(k.queue, e)
	k.of[j] = e
	switch {
	case k.now == nil || s.above || !k.now.above && s.weight > k.now.weight:
		k.run(k.pick())
	case len(k.queue) == 2:
		k.lookLater() // nobody looked while it was alone
	}
}

// exit takes a call out.
func (s *standing) exit(j *job) {
	k := s.kernel
	k.count()
	e := k.of[j]
	delete(k.of, j)
	k.queue = slices.DeleteFunc(k.queue, func(other *entity) bool { return other == e })
	if k.now == e {
		k.run(k.pick())
	}
}

// count adds to the virtual time of the call that has the core. While it is alone, one slice follows the other.
func (k *kernel) count() {
	if e := k.now; e != nil {
		e.virtual += (k.w.now - k.counted) / e.weight
		for len(k.queue) == 1 && e.virtual > e.deadline {
			e.deadline += k.slice / e.weight
		}
	}
	k.counted = k.w.now
}

// average is the virtual time of a call that has had exactly its share.
func (k *kernel) average() float64 {
	virtual, weight := 0.0, 0.0
	for _, e := range k.queue {
		if !e.above {
			virtual += e.virtual * e.weight
			weight += e.weight
		}
	}
	if weight == 0 {
		return 0
	}
	return virtual / weight
}

// exact is how exact sums of times are.
const exact = 1e-9

// pick is the call that gets the core next; nil if there is none. One that has it gives way to others with its deadline.
func (k *kernel) pick() (first *entity) {
	average := k.average()
	for _, e := range k.queue {
		if e.above {
			return e
		}
		if e.virtual > average+exact {
			continue
		}
		if first == nil || e.deadline < first.deadline-exact || first == k.now && e.deadline < first.deadline+exact {
			first = e
		}
	}
	return first
}

// run gives a call the core; nil is none.
func (k *kernel) run(e *entity) {
	if e != k.now {
		if k.now != nil && k.now.in != nil {
			k.core.exit(k.now.job)
		}
		if e != nil {
			k.core.enter(e.job)
		}
		k.now = e
	}
	k.lookLater()
}

// lookLater looks again when the call that has the core has used up its slice.
func (k *kernel) lookLater() {
	k.looks++
	if k.now == nil || k.now.above || len(k.queue) < 2 {
		return
	}
	look := k.looks
	k.w.after(max(0, k.now.deadline-k.now.virtual)*k.now.weight, func() {
		if k.looks == look {
			k.nextSlice()
		}
	})
}

// nextSlice begins the next slice, of the call that should have the core.
func (k *kernel) nextSlice() {
	k.count()
	e := k.now
	if e.ending() {
		return
	}
	e.deadline = e.virtual + k.slice/e.weight
	k.run(k.pick())
}
