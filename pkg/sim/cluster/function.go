package cluster

import (
	"fmt"
	"sort"
	"time"

	"github.com/windlass-dev/windlass/pkg/estimate"
	"github.com/windlass-dev/windlass/pkg/fpcs"
	"github.com/windlass-dev/windlass/pkg/invoke"
	"github.com/windlass-dev/windlass/pkg/queue"
	"github.com/windlass-dev/windlass/pkg/scheduler/upkeep"
)

// function is a function that was called. One that never was takes the room of a
// pointer.
type function struct {
	index  int
	name   string
	class  *Function
	result *FunctionResult

	// queue and instances are nil while nothing waits and no instance exists;
	// arrived and departed are what queues before this one have counted.
	queue             *queue.Queue
	instances         map[invoke.CID]*instance
	arrived, departed uint64

	// place is where it stands in world.populated.
	place int

	// starting are the instances under way, the youngest last.
	starting   []*instance
	created    int
	sequence   uint64
	executions *estimate.LastN
	starts     *estimate.LastN
	memory     fpcs.Memory
	// decided is when the last decision was made, valid once there was one, and again
	// how soon after it a call is reason for the next one; 0 for never.
	decided     time.Duration
	again       time.Duration
	hasDecision bool

	// keeper is nil if there is no upkeep but Limits.Min. The function has had no
	// calls since quietSince if it is quiet, and is to be looked at at wake.
	keeper     *upkeep.Keeper
	quiet      bool
	quietSince time.Duration
	wake       time.Duration

	// active says that the next tick looks at it, and blocked that its last order
	// had no effect.
	active  bool
	blocked bool
	// evicted is the instance that went to make room for this function, until an
	// order after its end.
	evicted bool
}

// function is the function of that number.
func (w *world) function(index int) *function {
	if f := w.functions[index]; f != nil {
		return f
	}
	i := sort.SearchInts(w.classEnds, index+1)
	class := &w.config.Functions[i]
	f := &function{
		index: index, name: fmt.Sprintf("%08d", index), class: class, result: &w.result.Functions[i],
		executions: estimate.NewLastN(w.config.Scheduler.Executions),
		starts:     estimate.NewLastN(w.config.Scheduler.Executions),
		keeper:     upkeep.New(class.Windows, class.Learns, class.KeepLast, time.Time{}, nil),
	}
	f.executions.Seed(class.KnownWork)
	f.starts.Seed(class.KnownStart)
	w.kind(class.Runtime).Observe(class.KnownStart)
	w.functions[index] = f
	w.scheduler.introduce(f)
	return f
}

// introduce makes the decision that the first tick of all made when it got to know the
// function: one without any call.
func (s *scheduler) introduce(f *function) {
	first := s.config.Scheduler.Tick
	if s.now <= first || s.config.Hash != nil {
		return
	}
	seen := fpcs.Snapshot{
		Room: s.room(f), Concurrency: f.class.Concurrency,
		MeanExecution: f.executions.Mean(), MeanStart: s.meanStart(f),
	}
	f.memory = f.decider(s.world)(seen, s.params()).Next
	f.decided, f.hasDecision = first, true
}

// kind is what was learnt of the starts of all functions of a runtime.
func (w *world) kind(runtime string) *estimate.LastN {
	last := w.kinds[runtime]
	if last == nil {
		last = estimate.NewLastN(w.config.Scheduler.Executions)
		w.kinds[runtime] = last
	}
	return last
}

// meanStart is how long an instance takes to start: as the function's last ones did,
// or else as those of its runtime; 0 if that is not known either.
func (w *world) meanStart(f *function) time.Duration {
	if own := f.starts.Mean(); own > 0 {
		return own
	}
	return w.kind(f.class.Runtime).Mean()
}

// revive gives a function a queue.
func (w *world) revive(f *function) {
	if f.queue == nil {
		f.queue = queue.New(queue.Limits{MaxWaiting: w.config.Scheduler.MaxQueued, ClaimGrace: forever})
	}
}

// rest takes a function's queue if it has no use for it.
func (w *world) rest(f *function) {
	if f.queue == nil || len(f.instances) > 0 || f.queue.Waiting() > 0 {
		return
	}
	view := f.queue.View(instant(w.now))
	f.arrived += view.Arrived
	f.departed += view.Departed
	f.queue, f.instances, f.starting = nil, nil, nil
}

// view is what the queue looks like, whether there is one or not.
func (f *function) view(now time.Duration) queue.View {
	var v queue.View
	if f.queue != nil {
		v = f.queue.View(instant(now))
	}
	v.Arrived += f.arrived
	v.Departed += f.departed
	return v
}

// decider is the function's own, or that of all.
func (f *function) decider(w *world) fpcs.Decider {
	if f.class.Decider != nil {
		return f.class.Decider
	}
	return w.config.Decider
}
