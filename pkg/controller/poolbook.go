package controller

import (
	"math"
	"slices"
	"sync"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/windlass-dev/windlass/api/v1alpha1"
	controlwire "github.com/windlass-dev/windlass/api/wire/control/v1alpha1"
)

// poolBook holds the latest of what each scheduler keeps of warm pools.
type poolBook struct {
	// poke is called, without the lock, with the name of each ClusterRuntime of which there
	// is something new.
	poke func(string)

	mu sync.Mutex
	// addresses are where schedulers should be, and told what those there have told.
	addresses []string
	told      map[string]*toldPools
}

// toldPools are what one scheduler has told.
type toldPools struct {
	// by is who told last; nil once its stream has broken, since the time lost.
	by       *stream
	lost     time.Time
	runtimes map[string]*controlwire.RuntimeFacts
}

// runtimeFacts are what all schedulers together keep of the warm pools of a ClusterRuntime.
type runtimeFacts struct {
	// schedulers is how many tell of warm pools; silent says that there are others.
	schedulers int
	silent     bool
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
	// noRoom says that some are missing because there is no room.
	noRoom bool
}

func newPoolBook(poke func(string)) *poolBook {
	return &poolBook{poke: poke, told: make(map[string]*toldPools)}
}

// expect says where schedulers are.
func (b *poolBook) expect(addresses []string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.addresses = slices.Clone(addresses)
}

// tell notes what a stream says.
func (b *poolBook) tell(by *stream, now *controlwire.WarmPools) {
	if now == nil {
		return
	}
	next := &toldPools{by: by, runtimes: make(map[string]*controlwire.RuntimeFacts)}
	for _, rt := range now.GetRuntimes() {
		next.runtimes[rt.GetName()] = rt
	}
	b.mu.Lock()
	changed := differing(b.told[by.address], next)
	b.told[by.address] = next
	b.mu.Unlock()
	for _, name := range changed {
		b.poke(name)
	}
}

// differing are the ClusterRuntimes of which two messages say different things. Before may
// be nil.
func differing(before, after *toldPools) (names []string) {
	if before == nil {
		before = &toldPools{}
	}
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
func (b *poolBook) close(by *stream) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if told := b.told[by.address]; told != nil && told.by == by {
		told.by, told.lost = nil, time.Now()
	}
}

// sweep forgets what nobody has told for too long.
func (b *poolBook) sweep() {
	var changed []string
	b.mu.Lock()
	for address, told := range b.told {
		if told.by == nil && time.Since(told.lost) >= lostGrace {
			delete(b.told, address)
			changed = append(changed, differing(told, &toldPools{})...)
		}
	}
	b.mu.Unlock()
	for _, name := range changed {
		b.poke(name)
	}
}

// look returns what is known of a ClusterRuntime's warm pools.
func (b *poolBook) look(name string) runtimeFacts {
	b.mu.Lock()
	defer b.mu.Unlock()
	found := runtimeFacts{schedulers: len(b.told), generation: math.MaxInt64, pools: make(map[string]poolFacts)}
	found.silent = slices.ContainsFunc(b.addresses, func(a string) bool { return b.told[a] == nil })
	for _, told := range b.told {
		rt := told.runtimes[name]
		found.generation = min(found.generation, rt.GetGeneration())
		for _, p := range rt.GetPools() {
			found.pools[p.GetName()] = found.pools[p.GetName()].and(p)
		}
	}
	return found
}

// and adds what another scheduler keeps of the pool. Of several problems it keeps the
// first by reason and detail, so that the order of schedulers changes nothing.
func (f poolFacts) and(p *controlwire.PoolFacts) poolFacts {
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
