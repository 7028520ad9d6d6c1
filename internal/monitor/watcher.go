package monitor

import (
	"cmp"
	"slices"
	"time"

	"github.com/windlass-dev/windlass/pkg/invocation"
)

const (
	// memory is how many intervals between samples are remembered.
	memory = 60
	// window is the time that rates and quantiles are of.
	window = 10 * time.Second
	// lately is for how long a function counts as called, as far as its intervals are remembered.
	lately = time.Minute
	// bridgeFor is for how long a process that does not answer counts as it was.
	bridgeFor = 30 * time.Second
)

// Watcher makes a View of each Sample. The zero value is ready. It is for one
// goroutine.
type Watcher struct {
	last *Sample
	// lengths are of the intervals, the last one last.
	lengths   []time.Duration
	functions map[invocation.FunctionKey]*past
	// all is of all functions together.
	all past
	// batch is what batch work of each node has used in the intervals that are remembered.
	batch map[string][]float64
}

// past is what a function did in the intervals that are remembered, the last one
// last.
type past []change

// change is the increase of the counters in one interval.
type change struct {
	calls, failed, cold float64
	phases              sums
	durations           spread
}

func (c *change) add(more change) {
	c.calls += more.calls
	c.failed += more.failed
	c.cold += more.cold
	for i := range c.phases {
		c.phases[i] += more.phases[i]
	}
	c.durations = append(c.durations, more.durations...)
}

// times is a share of the change.
func (c change) times(share float64) change {
	if share == 1 {
		return c
	}
	c.calls, c.failed, c.cold = c.calls*share, c.failed*share, c.cold*share
	for i := range c.phases {
		c.phases[i] *= share
	}
	c.durations = slices.Clone(c.durations)
	for i := range c.durations {
		c.durations[i].count *= share
	}
	return c
}

// See makes a View of the next Sample, which must be later than the previous ones.
func (w *Watcher) See(s Sample) View {
	w.bridge(s)
	now := total(s)
	w.dropRemoved(now)
	if w.last != nil && s.At.After(w.last.At) {
		w.lengths = append(w.lengths, s.At.Sub(w.last.At))
		w.lengths = w.lengths[max(0, len(w.lengths)-memory):]
		w.remember(w.changes(*w.last, s), now)
		w.rememberBatch(w.batchUsed(*w.last, s))
	}
	v := View{At: s.At, Troubles: s.Troubles, Functions: []Function{}}
	since := w.since(window)
	for _, length := range w.lengths[since:] {
		v.Over += length.Seconds()
	}
	v.Nodes = w.nodes(s, since, v.Over)
	decisions := decisionsOf(s)
	for key, f := range now {
		fn := w.viewOf(key, f, since, v.Over)
		fn.Last = decisions[key]
		v.Functions = append(v.Functions, fn)
	}
	slices.SortFunc(v.Functions, byName)
	v.Totals = w.totals(v, since)
	last := s
	w.last = &last
	return v
}

// bridge lets a process that does not answer be as it was for a while, so that a connection
// that breaks does not look like a catastrophe. One that is gone is not asked.
func (w *Watcher) bridge(s Sample) {
	if w.last == nil {
		return
	}
	for _, name := range s.failed {
		if src := w.last.sources[name]; src != nil && s.At.Sub(src.at) <= bridgeFor {
			s.sources[name] = src
		}
	}
}

// total adds up what the processes say of each function. Of one revision, two schedulers tell
// while it changes hands: then the most counts, as in dashboards.
func total(s Sample) map[invocation.FunctionKey]figures {
	all := make(map[invocation.FunctionKey]figures)
	for _, src := range s.sources {
		for key, f := range src.functions {
			sum := all[key]
			sum.inFlight += f.inFlight
			for _, u := range f.units {
				sum.unit(u.revision).most(u.state)
			}
			sum.counted.add(f.counted)
			all[key] = sum
		}
	}
	return all
}

// most joins what two schedulers say of one revision.
func (s *state) most(other state) {
	s.queued = max(s.queued, other.queued)
	s.oldest = max(s.oldest, other.oldest)
	s.broken = cmp.Or(s.broken, other.broken)
	s.instances.most(other.instances)
	s.meanExecution = max(s.meanExecution, other.meanExecution)
	s.meanStart = max(s.meanStart, other.meanStart)
	s.required = max(s.required, other.required)
	s.arrivalRate = max(s.arrivalRate, other.arrivalRate)
	s.horizon = max(s.horizon, other.horizon)
}

// state is that of all revisions together. The function cannot run if none of them can.
func (f *figures) state() (sum state) {
	broken := 0
	for _, u := range f.units {
		sum.queued += u.queued
		sum.oldest = max(sum.oldest, u.oldest)
		sum.instances.add(u.instances)
		sum.meanExecution = max(sum.meanExecution, u.meanExecution)
		sum.meanStart = max(sum.meanStart, u.meanStart)
		sum.required += u.required
		sum.arrivalRate += u.arrivalRate
		sum.horizon = max(sum.horizon, u.horizon)
		if u.broken != "" {
			broken++
			sum.broken = u.broken
		}
	}
	if broken < len(f.units) {
		sum.broken = ""
	}
	return sum
}

// revisions are those of a function that has several, the first one made first.
func (f *figures) revisions() []Revision {
	if len(f.units) < 2 {
		return nil
	}
	list := make([]Revision, len(f.units))
	for i, u := range f.units {
		list[i] = Revision{Revision: u.revision, Broken: u.broken, Queued: u.queued, Instances: u.instances}
	}
	slices.SortFunc(list, func(a, b Revision) int { return cmp.Compare(a.Revision, b.Revision) })
	return list
}

func (c *counted) add(more counted) {
	c.cold += more.cold
	c.launched += more.launched
	c.started += more.started
	c.failedStarts += more.failedStarts
	for i := range c.phases {
		c.phases[i] += more.phases[i]
		c.coldPhases[i] += more.coldPhases[i]
	}
}

// decisionsOf has the decision on each function that people look for: the last one of its revisions
// that changed the number of instances, or else the last one. The schedulers know those of a minute.
func decisionsOf(s Sample) map[invocation.FunctionKey]*Decision {
	decisions := make(map[invocation.FunctionKey]*Decision)
	for _, src := range s.sources {
		for i := range src.latest {
			told, ok := src.latest[i].Last()
			if !ok {
				continue
			}
			key := invocation.FunctionKey{Namespace: Printable(src.latest[i].Namespace), Name: Printable(src.latest[i].Name)}
			if d := NewDecision(told); decisions[key] == nil || d.outranks(decisions[key]) {
				decisions[key] = &d
			}
		}
	}
	return decisions
}

// dropRemoved drops functions that are gone.
func (w *Watcher) dropRemoved(now map[invocation.FunctionKey]figures) {
	for key := range w.functions {
		if _, there := now[key]; !there {
			delete(w.functions, key)
		}
	}
}

// remember takes down what changed lately, and forgets functions that were not called in any
// interval.
func (w *Watcher) remember(changes map[invocation.FunctionKey]past, now map[invocation.FunctionKey]figures) {
	if w.functions == nil {
		w.functions = make(map[invocation.FunctionKey]*past)
	}
	w.all.extend(len(w.lengths))
	for key := range now {
		p, news := w.functions[key], changes[key]
		if p == nil && news.calls() == 0 {
			continue
		}
		if p == nil {
			p = &past{}
			w.functions[key] = p
		}
		w.all.add(news)
		p.extend(len(w.lengths))
		p.add(news)
		if p.calls() == 0 {
			delete(w.functions, key)
		}
	}
	for i := range w.all {
		w.all[i].durations = merge(w.all[i].durations)
	}
	since := w.since(window)
	w.all.trim(since)
	for _, p := range w.functions {
		p.trim(since)
	}
}

// extend adds an interval without changes, so that there are n.
func (p *past) extend(n int) {
	for len(*p) < n-1 {
		*p = append(*p, change{})
	}
	if len(*p) == n {
		copy(*p, (*p)[1:])
		*p = (*p)[:n-1]
	}
	*p = append(*p, change{})
}

// add adds changes of the last intervals.
func (p past) add(news past) {
	for i := range news {
		p[len(p)-len(news)+i].add(news[i])
	}
}

// trim drops the durations of intervals that no quantile is of any more.
func (p past) trim(since int) {
	for i := range p[:since] {
		p[i].durations = nil
	}
}

func (p past) calls() (sum float64) {
	for i := range p {
		sum += p[i].calls
	}
	return sum
}

// changes are what each function's processes counted from one Sample to the next, by the last
// intervals. That is one interval, or those in which a process did not answer, too: when it counted,
// nobody knows, so each has a share by its length.
func (w *Watcher) changes(before, after Sample) map[invocation.FunctionKey]past {
	all := make(map[invocation.FunctionKey]past)
	for name, src := range after.sources {
		old := before.sources[name]
		if old == nil || !src.at.After(old.at) {
			// Whatever a new one has counted may be of any time, and a silent one has told nothing.
			continue
		}
		shares := w.shares(src.at.Sub(old.at))
		for key, f := range src.functions {
			was := old.functions[key]
			if was == nil {
				was = &figures{}
			}
			c, news := f.since(was), all[key]
			for len(news) < len(shares) {
				news = append(past{change{}}, news...)
			}
			for i, share := range shares {
				news[len(news)-len(shares)+i].add(c.times(share))
			}
			all[key] = news
		}
	}
	return all
}

// shares divides what was counted in some time up to now among the last intervals, the last one last.
func (w *Watcher) shares(of time.Duration) []float64 {
	first, left := len(w.lengths), of
	for first > 0 && left > 0 {
		first--
		left -= w.lengths[first]
	}
	shares := make([]float64, len(w.lengths)-first)
	for i, length := range w.lengths[first:] {
		shares[i] = length.Seconds() / of.Seconds()
	}
	return shares
}

// since is what was counted after before.
func (f *figures) since(before *figures) change {
	c := change{durations: f.durations.since(before.durations), cold: rise(before.cold, f.cold)}
	for revision, now := range f.answers {
		was := before.answers[revision]
		c.calls += rise(was.calls, now.calls)
		c.failed += rise(was.failed, now.failed)
	}
	for i := range c.phases {
		c.phases[i] = rise(before.phases[i], f.phases[i])
	}
	return c
}

// rise is what a counter has counted. One that fell belongs to a process that has restarted.
func rise(was, now float64) float64 {
	if now < was {
		return now
	}
	return now - was
}

// since is the first interval of a time up to now: as many of the last as fit, at least one.
func (w *Watcher) since(span time.Duration) int {
	i, length := len(w.lengths), time.Duration(0)
	for i > 0 {
		if length += w.lengths[i-1]; length > span && i < len(w.lengths) {
			break
		}
		i--
	}
	return i
}

// load is what calls came in the intervals.
func (w *Watcher) load(s state, inFlight int, p past, since int, over float64) (Load, change) {
	l := Load{
		Queued: s.queued, OldestWait: s.oldest, InFlight: inFlight, Instances: s.instances,
		Recent: make([]float64, len(w.lengths)),
	}
	var sum change
	for i, c := range p {
		l.Recent[i] = c.calls / w.lengths[i].Seconds()
		if i >= since {
			sum.add(c)
		}
	}
	if over > 0 {
		l.Rate, l.Errors, l.Cold = sum.calls/over, sum.failed/over, sum.cold/over
	}
	durations := merge(sum.durations)
	l.P50, l.P99 = durations.quantile(0.5), durations.quantile(0.99)
	return l, sum
}

func (w *Watcher) viewOf(key invocation.FunctionKey, f figures, since int, over float64) Function {
	var intervals past
	if p := w.functions[key]; p != nil {
		intervals = *p
	}
	now := f.state()
	load, sum := w.load(now, f.inFlight, intervals, since, over)
	fn := Function{
		Namespace: key.Namespace, Name: key.Name, Broken: now.broken, Revisions: f.revisions(), Load: load,
		Plan: Plan{
			Required: now.required, ArrivalRate: now.arrivalRate, Horizon: now.horizon,
			MeanExecution: now.meanExecution, MeanStart: now.meanStart,
			Launched: int(f.launched), Started: int(f.started), Failed: int(f.failedStarts),
		},
		Called:     intervals[min(w.since(lately), len(intervals)):].calls() > 0,
		Phases:     withoutIdleCore(split(phases, sum.phases, sum.calls)),
		ColdPhases: split(coldPhases, f.coldPhases, f.started),
	}
	return fn
}

func (w *Watcher) totals(v View, since int) Totals {
	var s state
	broken, called, inFlight := 0, 0, 0
	for i := range v.Functions {
		f := &v.Functions[i]
		s.queued += f.Queued
		inFlight += f.InFlight
		s.oldest = max(s.oldest, f.OldestWait)
		s.instances.add(f.Instances)
		if f.Broken != "" {
			broken++
		}
		if f.Called {
			called++
		}
	}
	load, _ := w.load(s, inFlight, w.all, since, v.Over)
	return Totals{Functions: len(v.Functions), Called: called, Broken: broken, Load: load}
}

// split divides what n calls or starts took; nil if nothing is known of that.
func split(names []string, of sums, n float64) []Phase {
	total := 0.0
	for _, sum := range of {
		total += sum
	}
	if total <= 0 || n <= 0 {
		return nil
	}
	parts := make([]Phase, len(names))
	for i, name := range names {
		parts[i] = Phase{Name: name, Mean: of[i] / n, Share: of[i] / total}
	}
	return parts
}

// withoutIdleCore leaves the phase core out if no call waited for a core of its node, which is so
// wherever nodes do not order their calls.
func withoutIdleCore(parts []Phase) []Phase {
	return slices.DeleteFunc(parts, func(p Phase) bool { return p.Name == corePhase && p.Mean == 0 })
}
