package node

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"
	"time"
)

// Policy decides which calls compute: one of the policies of this package.
type Policy interface {
	// start makes its state and says what cores there are.
	start(w *world, cores int) (decisions, error)
}

// decisions are what a policy does about calls.
type decisions interface {
	// add says that a call came, and stop that one is over.
	add(j *job)
	stop(j *job)
}

// sleeper is a policy that cares about calls that do something else than compute.
type sleeper interface {
	// block says that a call has ceased to compute for now, and wake that it computes again.
	block(j *job)
	wake(j *job)
}

// station is where calls compute: a band, or a standing at the kernel.
type station interface {
	// enter lets a call compute for what is left of its phase, and exit takes it out.
	enter(j *job)
	exit(j *job)
}

// job is a call in the simulation.
type job struct {
	Call
	number int
	// phase is the one that it is in; left is what is left of it, unless it runs.
	phase int
	left  float64
	// home is where it computes when it does, and in the band in which it runs.
	home station
	in   *band
	// resource is the shared resource that it uses, nil for the node's.
	resource *band
	// end is when its phase ends, on the band's clock, and place where it is in the band's heap.
	end   float64
	place int
	// used is the time that it computed in the phases before.
	used float64
	// launched is when its process was there, and began when it first got a part of a core or did something else than compute; both are
	// negative before.
	launched, began, ended float64
	there, over            bool
	answered               bool // it is what a process does once it has answered
}

// timer is something to do at a time. Those of one time go in the order in which they
// were made.
type timer struct {
	at     float64
	number int
	do     func()
}

type world struct {
	now    float64
	jobs   []*job
	next   int // of the jobs that have not come
	timers heap[*timer]
	made   int
	open   int // jobs that are not over
	groups []*group
	// shared is the node's shared resource.
	shared   *group
	decide   decisions
	sleeping sleeper
	// watch sees the world after every event; for tests.
	watch func(*world)
}

// Run simulates calls on a node, and returns their results in the order of the calls.
func Run(cores int, calls []Call, policy Policy) ([]Result, error) {
	return runWatched(cores, calls, policy, nil)
}

func runWatched(cores int, calls []Call, policy Policy, watch func(*world)) ([]Result, error) {
	if cores < 1 {
		return nil, fmt.Errorf("node: there are %d cores; there must be at least 1", cores)
	}
	w := &world{shared: newGroup(1, 1), watch: watch}
	w.timers.before = func(a, b *timer) bool { return a.at < b.at || a.at == b.at && a.number < b.number }
	for i, c := range calls {
		if err := c.check(); err != nil {
			return nil, fmt.Errorf("node: call %d %w", i, err)
		}
		w.jobs = append(w.jobs, &job{Call: c, number: i, launched: -1, began: -1})
	}
	byCall := slices.Clone(w.jobs)
	slices.SortStableFunc(w.jobs, func(a, b *job) int { return cmp.Compare(a.Arrival, b.Arrival) })
	var err error
	if w.decide, err = policy.start(w, cores); err != nil {
		return nil, err
	}
	w.sleeping, _ = w.decide.(sleeper)
	w.groups = append(w.groups, w.shared)
	if err := w.loop(); err != nil {
		return nil, err
	}
	results := make([]Result, len(calls))
	for i, j := range byCall {
		results[i] = Result{
			Arrival: j.Arrival, Began: max(j.Arrival, ofSeconds(j.began)), Ended: ofSeconds(j.ended), CPU: j.CPU(), Alone: j.Alone(),
		}
	}
	return results, nil
}

func ofSeconds(s float64) time.Duration { return time.Duration(math.Round(s * 1e9)) }

// loop runs the events: of one moment first calls that come, then timers, then phases that end.
func (w *world) loop() error {
	for w.open = len(w.jobs); w.open > 0; {
		for _, g := range w.groups {
			g.divide()
		}
		w.look()
		arrival, timed := math.Inf(1), math.Inf(1)
		if w.next < len(w.jobs) {
			arrival = w.jobs[w.next].Arrival.Seconds()
		}
		if len(w.timers.items) > 0 {
			timed = w.timers.items[0].at
		}
		first, ends := w.firstEnd()
		at := min(arrival, timed, ends)
		if math.IsInf(at, 1) {
			return errors.New("node: the policy lets calls wait, and nothing happens any more")
		}
		w.pass(at)
		switch at {
		case arrival:
			j := w.jobs[w.next]
			w.next++
			j.there = true
			w.decide.add(j)
		case timed:
			w.timers.cut(0).do()
		default:
			j := first.jobs.items[0]
			if j.computes() {
				j.home.exit(j)
			} else {
				first.exit(j)
			}
			j.left = 0
			w.proceed(j)
		}
	}
	w.look()
	return nil
}

func (w *world) look() {
	if w.watch != nil {
		w.watch(w)
	}
}

// firstEnd is the band in which the next phase ends, and when.
func (w *world) firstEnd() (*band, float64) {
	var first *band
	at := math.Inf(1)
	for _, g := range w.groups {
		for _, b := range g.bands {
			if ends := w.now + b.nextEnd(); ends < at {
				first, at = b, ends
			}
		}
	}
	return first, at
}

func (w *world) pass(at float64) {
	for _, g := range w.groups {
		for _, b := range g.bands {
			b.pass(w.now, at-w.now)
		}
	}
	w.now = at
}

// after does something in some seconds.
func (w *world) after(seconds float64, do func()) {
	w.made++
	w.timers.insert(&timer{at: w.now + seconds, number: w.made, do: do})
}

// launch begins a call, which computes in a band whenever it does.
func (w *world) launch(j *job, home station) {
	j.launched, j.home = w.now, home
	j.left = j.Phases[0].Length.Seconds()
	w.perform(j)
}

// perform lets the call do its phase.
func (w *world) perform(j *job) {
	if !j.computes() {
		j.markBegun(w.now)
	}
	switch j.Phases[j.phase].Kind {
	case Compute:
		if j.home != nil {
			j.home.enter(j)
		}
		return
	case Sleep:
		w.after(j.left, func() { w.proceed(j) })
	case Share:
		if j.resource == nil {
			j.resource = w.shared.bands[0]
		}
		j.resource.enter(j)
	}
	if w.sleeping != nil {
		w.sleeping.block(j)
	}
}

// markBegun notes that the call gets what it needs, unless it did before.
func (j *job) markBegun(now float64) {
	if j.began < 0 {
		j.began = now
	}
}

// proceed goes on to the next phase once one is over.
func (w *world) proceed(j *job) {
	computed := j.computes()
	if computed {
		j.used += j.Phases[j.phase].Length.Seconds()
	}
	j.phase++
	if j.phase == len(j.Phases) {
		j.ended, j.over = w.now, true
		if j.answered {
			return
		}
		w.open--
		w.decide.stop(j)
		w.goOn(j)
		return
	}
	j.left = j.Phases[j.phase].Length.Seconds()
	w.perform(j)
	if !computed && j.computes() && w.sleeping != nil {
		w.sleeping.wake(j)
	}
}

// goOn lets the process of a call that has ended compute what is left for it to do.
func (w *world) goOn(j *job) {
	if j.Rest > 0 {
		w.launch(&job{Call: Computing(j.Arrival, j.Function, j.Rest), number: j.number, launched: -1, began: -1, answered: true}, j.home)
	}
}

// move lets a call compute elsewhere, or, with nil, not at all.
func (w *world) move(j *job, home station) {
	if j.home == home {
		return
	}
	before := j.home
	j.home = home
	if !j.computes() {
		return
	}
	if before != nil {
		before.exit(j)
	}
	if home != nil {
		home.enter(j)
	}
}

// computes reports whether the call's phase needs a core.
func (j *job) computes() bool { return !j.over && j.Phases[j.phase].Kind == Compute }

// remaining is what is left of its phase.
func (j *job) remaining() float64 {
	if j.in != nil {
		return max(0, j.end-j.in.clock)
	}
	return j.left
}

// ending reports whether the call is through with its phase at this moment.
func (j *job) ending() bool { return j.computes() && j.remaining() < 1e-9 }

// computed is how long it has computed.
func (j *job) computed() float64 {
	if !j.computes() || j.launched < 0 {
		return j.used
	}
	return j.used + j.Phases[j.phase].Length.Seconds() - j.remaining()
}
