package node

import "math"

// band is calls that share cores equally; each gets at most one. Its clock goes on by what
// each of them got, so that a call ends when the clock has gone on by its work: an event
// costs the logarithm of the calls, not their number.
type band struct {
	// cores are what the calls share now.
	cores float64
	clock float64
	jobs  heap[*job]
	// fresh are calls that came and may have got nothing yet, here or elsewhere.
	fresh []*job
}

func newBand() *band {
	return &band{jobs: heap[*job]{
		before: func(a, b *job) bool { return a.end < b.end || a.end == b.end && a.number < b.number },
		moved:  func(j *job, place int) { j.place = place },
	}}
}

// rate is how much of a core each call gets.
func (b *band) rate() float64 {
	if len(b.jobs.items) == 0 {
		return 0
	}
	return min(1, b.cores/float64(len(b.jobs.items)))
}

// pass lets time pass.
func (b *band) pass(now, seconds float64) {
	got := b.rate() * seconds
	b.clock += got
	if got <= 0 {
		return
	}
	for _, j := range b.fresh {
		if j.in == b {
			j.markBegun(now)
		}
	}
	b.fresh = b.fresh[:0]
}

// nextEnd is in how many seconds the first call is through with its phase.
func (b *band) nextEnd() float64 {
	rate := b.rate()
	if rate <= 0 {
		return math.Inf(1)
	}
	return max(0, b.jobs.items[0].end-b.clock) / rate
}

// enter lets a call run for what is left of its phase.
func (b *band) enter(j *job) {
	j.in, j.end = b, b.clock+j.left
	b.jobs.insert(j)
	if j.began < 0 {
		b.fresh = append(b.fresh, j)
	}
}

// exit takes a call out.
func (b *band) exit(j *job) {
	j.left = max(0, j.end-b.clock)
	b.jobs.cut(j.place)
	j.in = nil
}

// group is cores with bands on them, the first before the others: a band gets what those before
// it do not use.
type group struct {
	cores float64
	bands []*band
}

func newGroup(cores float64, bands int) *group {
	g := &group{cores: cores}
	for range bands {
		g.bands = append(g.bands, newBand())
	}
	return g
}

// divide gives each band its cores.
func (g *group) divide() {
	left := g.cores
	for _, b := range g.bands {
		b.cores = left
		left = max(0, left-float64(len(b.jobs.items)))
	}
}
