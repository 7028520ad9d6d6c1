package controller

import (
	"maps"
	"math"
	"slices"
	"sync"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/windlass-dev/windlass/api/v1alpha1"
	controlwire "github.com/windlass-dev/windlass/api/wire/control/v1alpha1"
)

// poolStore holds the latest of what each scheduler keeps of warm pools.
type poolStore struct {
	// onChange is called, without the lock, with the name of each ClusterRuntime whose facts
	// have changed.
	onChange func(string)

	mu sync.Mutex
	// addresses are the expected schedulers once they are known, and reports has the reports of
	// those.
	addresses []string
	known     bool
	reports   map[string]*schedulerReport
}

// schedulerReport is what one scheduler has reported.
type schedulerReport struct {
	// stream reported last; nil once its stream has broken, since the time lost.
	stream   *stream
	lost     time.Time
	runtimes map[string]*controlwire.RuntimeFacts
}

// runtimeFacts are what all schedulers together keep of the warm pools of a ClusterRuntime.
type runtimeFacts struct {
	// schedulers is how many report warm pools; incomplete says that others do not, or may not.
	schedulers int
	incomplete bool
	// generation is the lowest that one of them has considered; 0 if one does not know the
	// ClusterRuntime.
	generation int64
	pools      map[string]poolFacts
}

// poolFacts are what all schedulers together keep of one warm pool.
type poolFacts struct {
	desired, ready int64
	// problem is none unless spare instances do not start somewhere.
	problem problem
	// noRoom says that some are missing for lack of room.
	noRoom bool
}

func newPoolStore(poke func(string)) *poolStore {
	return &poolStore{onChange: poke, reports: make(map[string]*schedulerReport)}
}

// setAddresses says where schedulers are.
func (b *poolStore) setAddresses(addresses []string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.addresses, b.known = slices.Clone(addresses), true
}

// setReport records the message of a stream.
func (b *poolStore) setReport(by *stream, now *controlwire.WarmPools) {
	if now == nil {
		return
	}
	next := &schedulerReport{stream: by, runtimes: make(map[string]*controlwire.RuntimeFacts)}
	for _, rt := range now.GetRuntimes() {
		next.runtimes[rt.GetName()] = rt
	}
	b.mu.Lock()
	before := b.reports[by.address]
	b.reports[by.address] = next
	changed := b.runtimes()
	if before != nil {
		changed = changedRuntimes(before, next)
	}
	b.mu.Unlock()
	for _, name := range changed {
		b.onChange(name)
	}
}

// runtimes are all ClusterRuntimes of the reports. Each changes with the set of reports, since a
// report that lacks it counts, too. The caller holds the lock.
func (b *poolStore) runtimes() []string {
	names := make(map[string]bool)
	for _, observed := range b.reports {
		for name := range observed.runtimes {
			names[name] = true
		}
	}
	return slices.Collect(maps.Keys(names))
}

// changedRuntimes are the ClusterRuntimes about which two messages differ.
func changedRuntimes(before, after *schedulerReport) (names []string) {
	for name, rt := range after.runtimes {
		if was := before.runtimes[name]; was == nil || !proto.Equal(was, rt) {
			names = append(names, name)
		}
	}
	for name := range before.runtimes {
		if after.runtimes[name] == nil {
			names = append(names, name)
		}
	}
	return names
}

// close says that a stream has ended.
func (b *poolStore) close(by *stream) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if observed := b.reports[by.address]; observed != nil && observed.stream == by {
		observed.stream, observed.lost = nil, time.Now()
	}
}

// sweep drops facts that no scheduler has reported for too long.
func (b *poolStore) sweep() {
	b.mu.Lock()
	changed, reports := b.runtimes(), len(b.reports)
	maps.DeleteFunc(b.reports, func(_ string, observed *schedulerReport) bool {
		return observed.stream == nil && time.Since(observed.lost) >= lostGrace
	})
	if len(b.reports) == reports {
		changed = nil
	}
	b.mu.Unlock()
	for _, name := range changed {
		b.onChange(name)
	}
}

// get returns the facts about a ClusterRuntime's warm pools.
func (b *poolStore) get(name string) runtimeFacts {
	b.mu.Lock()
	defer b.mu.Unlock()
	found := runtimeFacts{schedulers: len(b.reports), generation: math.MaxInt64, pools: make(map[string]poolFacts)}
	found.incomplete = !b.known || slices.ContainsFunc(b.addresses, func(a string) bool { return b.reports[a] == nil })
	for _, observed := range b.reports {
		rt := observed.runtimes[name]
		found.generation = min(found.generation, rt.GetGeneration())
		for _, p := range rt.GetPools() {
			found.pools[p.GetName()] = found.pools[p.GetName()].plus(p)
		}
	}
	return found
}

// plus adds another scheduler's part of the pool. Of several problems it keeps the first by
// reason and detail, so that the order of schedulers does not matter.
func (f poolFacts) plus(p *controlwire.PoolFacts) poolFacts {
	f.desired, f.ready, f.noRoom = f.desired+int64(p.GetDesired()), f.ready+int64(p.GetReady()), f.noRoom || p.GetNoCapacity()
	if p.GetProblem() == "" {
		return f
	}
	why := problem{reason: p.GetProblem(), detail: p.GetDetail()}
	if !reasonPattern.MatchString(why.reason) {
		why.reason = v1alpha1.ReasonStartFailed
	}
	if f.problem.reason == "" || why.reason < f.problem.reason || why.reason == f.problem.reason && why.detail < f.problem.detail {
		f.problem = why
	}
	return f
}
