package cluster

import (
	"math/rand/v2"
	"time"

	"github.com/windlass-dev/windlass/pkg/provisioner/placement"
)

// world is a simulation that runs.
type world struct {
	config Config
	now    time.Duration
	agenda agenda
	result Result

	functions []*function
	classEnds []int // of each class, the number of the first function after it
	machines  []*machine

	// populated are the functions that have instances.
	populated []*function

	// scheduler is nil where calls are pushed.
	scheduler *scheduler
	// onCalls, onInstances and onNodes are the policy that is tried.
	onCalls     callPolicy
	onInstances instancePolicy
	onNodes     nodePolicy

	calls    uint64
	loads    int // loads that have not ended
	groups   []*clientGroup
	counters counters

	// Chance comes in separate streams, so that what one part draws changes nothing
	// for the others.
	works, starts, picks, jitters *rand.Rand
}

// epoch is the time 0 of simulations.
var epoch = time.Unix(0, 0).UTC()

// forever is longer than any simulation.
const forever = 100 * 365 * 24 * time.Hour

func instant(d time.Duration) time.Time { return epoch.Add(d) }

// Run runs a simulation. The same Config always has the same Result. The error names the field
// that is out of range.
func Run(config Config) (Result, error) {
	if err := config.Validate(); err != nil {
		return Result{}, err
	}
	w := build(config)
	w.run()
	return w.finish(), nil
}

func build(config Config) *world {
	config.Functions = append([]Function(nil), config.Functions...)
	w := &world{config: config}
	streams := uint64(0)
	stream := func() *rand.Rand {
		streams++
		return rand.New(rand.NewPCG(config.Seed, streams))
	}
	w.works, w.starts, w.picks, w.jitters = stream(), stream(), stream(), stream()
	count := 0
	for i := range config.Functions {
		f := &config.Functions[i]
		f.setDefaults()
		count += f.Copies
		w.classEnds = append(w.classEnds, count)
		w.result.Functions = append(w.result.Functions, newFunctionResult(2))
	}
	w.result.Total = newFunctionResult(3)
	w.result.Slowdown = Ratios{newHistogram(3)}
	w.functions = make([]*function, count)
	if config.Hash != nil {
		pushes := &pushing{world: w, hash: *config.Hash}
		w.onCalls, w.onInstances, w.onNodes = pushes, pushes, pushes
	} else {
		w.scheduler = newScheduler(w)
		w.pull()
	}
	for _, n := range nodesOf(config.Nodes) {
		w.joinLater(n)
	}
	for _, l := range config.Loads {
		w.loads++
		(&source{next: l.Calls(stream())}).plan(w)
	}
	for _, c := range config.Clients {
		w.beginClients(c, stream())
	}
	w.firstPoint()
	if w.scheduler != nil {
		w.scheduler.serveFloors()
	}
	return w
}

// pull lets instances pull from one queue, or lend their pulls to gateways.
func (w *world) pull() {
	w.onNodes = w.scheduler
	if w.config.Gateways == 0 {
		pulls := &pulling{scheduler: w.scheduler}
		w.onCalls, w.onInstances = pulls, pulls
		return
	}
	orElse(&w.config.ReportEvery, DefaultReportEvery)
	lends := newLending(w.scheduler)
	w.scheduler.lending = lends
	w.onCalls, w.onInstances = lends, lends
}

// nodesOf are the machines that stand for none at all.
func nodesOf(groups []Nodes) []Nodes {
	if len(groups) == 0 {
		const lots = 1 << 60
		return []Nodes{{Count: 1, Allocatable: placement.Amount{MilliCPU: lots, Memory: lots, Pods: lots}}}
	}
	return groups
}

// run lets one event happen after the other.
func (w *world) run() {
	for {
		at, ok := w.agenda.next()
		if !ok || w.config.Length > 0 && at > w.config.Length || w.config.Length == 0 && w.settled() {
			break
		}
		e := w.agenda.pop()
		w.now = e.at
		w.result.Events++
		e.act.run(w)
	}
	w.now = max(w.now, w.config.Length)
}

// settled tells whether no call is open and none will come.
func (w *world) settled() bool {
	if w.counters.open > 0 || w.loads > 0 {
		return false
	}
	for _, k := range w.groups {
		if !k.done(w.now) {
			return false
		}
	}
	return true
}

// after plans what happens later, or lets it happen if that is now.
func (w *world) after(d time.Duration, act action) {
	if d > 0 {
		w.agenda.plan(w.now+d, act)
		return
	}
	act.run(w)
}

// source is a load at work.
type source struct {
	next func() (Call, bool)
	due  Call
}

// plan plans the source's next call.
func (s *source) plan(w *world) {
	due, ok := s.next()
	if !ok {
		w.loads--
		return
	}
	s.due = due
	w.agenda.plan(due.At, (*sourceCalls)(s))
}

// sourceCalls is when a call of a load is due.
type sourceCalls source

func (e *sourceCalls) run(w *world) {
	s := (*source)(e)
	due := s.due
	s.plan(w)
	w.arrive(due, nil)
}

// finish closes the books.
func (w *world) finish() Result {
	w.result.Length = w.now
	for _, f := range w.populated {
		for _, in := range f.instances {
			w.enter(in, in.phase)
		}
	}
	for i, m := range w.machines {
		m.advance(w.now)
		w.result.Nodes[i].Used = m.used
	}
	for i := range w.result.Functions {
		r := &w.result.Functions[i]
		r.Open = r.Calls - r.Answered - r.Refused - r.Expired
		w.result.Total.add(*r)
	}
	return w.result
}
