package callorder

import (
	"cmp"
	"math"
	"slices"
	"strings"
	"time"
)

type functionName struct{ namespace, name string }

// function is what the node knows of a function.
type function struct {
	name      functionName
	instances int
	last      time.Duration // when a call of it last began or ended, or it joined

	times    [10]time.Duration // processor times of its last calls
	observed int               // how many it has had
	// least is the longest that a call of it has computed when it had outlived its slice, while none had
	// ended: the mean is hardly less. Otherwise all calls of a rush would count as short until the
	// first has ended.
	least time.Duration

	// previous and latest are when its last two calls were received; before the first, both
	// are before every other call.
	previous, latest time.Duration
	// recent is when its calls of the last minute arrived; for Fair-Choice only.
	recent []time.Duration
}

// beforeAll is before every time that occurs.
const beforeAll = time.Duration(math.MinInt64 / 2)

// recently is the time over which Fair-Choice counts calls (T in the paper).
const recently = time.Minute

// functions are those that the node knows.
type functions map[functionName]*function

// of finds or begins a function, and forgets one if there are more than bound.
func (all functions) of(now time.Duration, name functionName, bound int) *function {
	f := all[name]
	if f != nil {
		return f
	}
	if len(all) >= bound {
		all.forgetOne()
	}
	f = &function{name: name, last: now, previous: beforeAll, latest: beforeAll}
	all[name] = f
	return f
}

// forgetOne drops the function without instances that was used the longest ago.
func (all functions) forgetOne() {
	var oldest *function
	for _, f := range all {
		if f.instances > 0 {
			continue
		}
		if oldest == nil || f.last < oldest.last || f.last == oldest.last && f.name.before(oldest.name) {
			oldest = f
		}
	}
	if oldest != nil {
		delete(all, oldest.name)
	}
}

func (n functionName) before(other functionName) bool {
	return cmp.Or(strings.Compare(n.namespace, other.namespace), strings.Compare(n.name, other.name)) < 0
}

// received notes an arrival.
func (f *function) received(now time.Duration) {
	f.last = now
	f.previous, f.latest = f.latest, now
}

// count notes an arrival for Fair-Choice.
func (f *function) count(now time.Duration) {
	old := 0
	for old < len(f.recent) && f.recent[old] <= now-recently {
		old++
	}
	f.recent = append(f.recent[old:], now)
}

// goneArrivals is how many arrivals are kept of a function without instances. Agents name their functions, and
// may have a new one each minute.
const goneArrivals = 100

// shrink forgets all but the last arrivals.
func (f *function) shrink() {
	f.recent = slices.Clone(f.recent[max(0, len(f.recent)-goneArrivals):])
}

// learn notes the processor time of a call that ended.
func (f *function) learn(now, used time.Duration) {
	f.last = now
	f.times[f.observed%len(f.times)] = used
	f.observed++
}

func (f *function) known() bool { return f.observed > 0 }

// outgrown notes what a call has computed that has not ended, and reports whether that is news.
func (f *function) outgrown(used time.Duration) bool {
	if f.known() || used <= f.least {
		return false
	}
	f.least = used
	return true
}

// mean is the mean processor time of the last ten calls, or the least that it seems to be if there were none.
func (f *function) mean() time.Duration {
	n := min(f.observed, len(f.times))
	if n == 0 {
		return f.least
	}
	var sum time.Duration
	for _, t := range f.times[:n] {
		sum += t
	}
	return sum / time.Duration(n)
}

// key is the place of a call in the line that was received then, in nanoseconds; the smallest is first.
func (p Params) key(i *instance, received time.Duration) float64 {
	f, r := i.function, float64(received)
	mean := float64(f.mean())
	switch p.Order {
	case SEPT:
		return mean
	case EECT:
		return r + mean
	case RECT:
		return float64(f.previous) + mean
	case FairChoice:
		// The call itself is the last of the recent ones, and does not count.
		return float64(max(0, len(f.recent)-1)) * mean
	case SERPT:
		return float64(i.left()) + p.Aging*r
	default:
		return r
	}
}

// slice is the processor time after which the call of an instance loses its ticket. An own slice
// can only shorten it: a longer one would take processor time from others.
func (c *Core) slice(i *instance) time.Duration {
	if i.ownSlice > 0 {
		return min(i.ownSlice, c.nodeSlice(i))
	}
	return c.nodeSlice(i)
}

// nodeSlice is the slice by the rule of the node.
func (c *Core) nodeSlice(i *instance) time.Duration {
	switch s := c.params.Slice; s.Rule {
	case SliceFixed:
		return s.Length
	case SliceSFS:
		return c.rhythm.slice
	case SliceP95:
		return c.sizes.p95()
	case SliceAuto:
		if i.function.known() {
			return max(firstSlice, 4*i.function.mean())
		}
		return max(c.rhythm.slice, 4*i.function.least)
	default:
		return math.MaxInt64
	}
}

// NewcomerSlice is the slice of a call of a function that has had none here, and whether it has one.
func (c *Core) NewcomerSlice() (slice time.Duration, limited bool) {
	slice = c.slice(&instance{function: &function{}})
	return slice, slice < math.MaxInt64
}

const (
	firstSlice = 20 * time.Millisecond
	leastSlice = 6 * time.Millisecond
	window     = 100 // arrivals or ends that slices are found from
)

// rhythm finds SFS's slice: the mean time between arrivals, times the cores, again after each
// window of arrivals.
type rhythm struct {
	cores    int
	slice    time.Duration
	arrivals int
	from     time.Duration
}

func newRhythm(cores int) rhythm { return rhythm{cores: cores, slice: firstSlice} }

func (r *rhythm) arrived(now time.Duration) {
	if r.arrivals == 0 {
		r.from = now
	}
	r.arrivals++
	if r.arrivals > window {
		mean := (now - r.from) / window
		r.slice = max(leastSlice, mean*time.Duration(r.cores))
		r.arrivals, r.from = 1, now
	}
}

// sizes are the processor times of the node's last calls.
type sizes struct {
	times  [window]time.Duration
	n      int
	at95   time.Duration
	sorted bool
}

func (s *sizes) learn(used time.Duration) {
	s.times[s.n%window] = used
	s.n++
	s.sorted = false
}

// p95 is their 95th percentile; without end before there are enough.
func (s *sizes) p95() time.Duration {
	if s.n < window {
		return math.MaxInt64
	}
	if !s.sorted {
		ordered := slices.Clone(s.times[:])
		slices.Sort(ordered)
		s.at95, s.sorted = ordered[window*95/100-1], true
	}
	return s.at95
}
