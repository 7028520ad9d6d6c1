package scheduler

import (
	"cmp"
	"slices"

	controlwire "github.com/windlass-dev/windlass/api/wire/control/v1alpha1"
	"github.com/windlass-dev/windlass/pkg/invocation"
	"github.com/windlass-dev/windlass/pkg/provisioner/warmpool"
)

// poolShare is this scheduler's part of a pool in one namespace.
type poolShare struct {
	warmpool.Pool
	desired, ready int
	noRoom         bool
}

// shares returns the parts of all pools in the order of their ClusterRuntimes and names, and
// the generations of all ClusterRuntimes with pools; nil until the first computation.
func (s *spares) shares() (list []poolShare, generations map[string]int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, p := range s.pools {
		list = append(list, poolShare{p.Pool, p.target, len(p.ready), p.noRoom})
	}
	slices.SortFunc(list, func(a, b poolShare) int {
		return cmp.Or(cmp.Compare(a.Runtime, b.Runtime), cmp.Compare(a.Name, b.Name), cmp.Compare(a.Namespace, b.Namespace))
	})
	return list, s.generations // which is never changed
}

// poolFacts reports the scheduler's warm pools, summed over namespaces; nil until they are
// known. A ClusterRuntime without a part is listed too, so that the controller knows that its
// pools were evaluated.
func (s *warmPools) poolFacts() *controlwire.WarmPools {
	shares, generations := s.spares.shares()
	if generations == nil {
		return nil
	}
	told := make(map[string]*controlwire.RuntimeFacts, len(generations))
	all := &controlwire.WarmPools{}
	for name, generation := range generations {
		told[name] = &controlwire.RuntimeFacts{Name: name, Generation: generation}
		all.Runtimes = append(all.Runtimes, told[name])
	}
	slices.SortFunc(all.Runtimes, func(a, b *controlwire.RuntimeFacts) int { return cmp.Compare(a.Name, b.Name) })
	for _, of := range shares {
		if rt := told[of.Runtime]; rt != nil {
			s.addTo(rt, of)
		}
	}
	return all
}

// addTo adds the part of a namespace to a ClusterRuntime's facts. If spare instances fail to
// start in several namespaces, the first one is reported.
func (s *warmPools) addTo(rt *controlwire.RuntimeFacts, of poolShare) {
	last := len(rt.Pools) - 1
	if last < 0 || rt.Pools[last].Name != of.Name {
		rt.Pools = append(rt.Pools, &controlwire.PoolFacts{Name: of.Name})
		last++
	}
	p := rt.Pools[last]
	p.Desired, p.Ready, p.NoCapacity = p.Desired+uint32(of.desired), p.Ready+uint32(of.ready), p.NoCapacity || of.noRoom
	if seen := s.deps.Instances.Observe(of.UID()); seen.Failing && p.Problem == "" {
		p.Problem, p.Detail = seen.Why.Code, "in namespace "+of.Namespace+": "+invocation.Excerpt(seen.Why.String())
	}
}
