package scheduler

import (
	"github.com/windlass-dev/windlass/api/v1alpha1"
	"github.com/windlass-dev/windlass/pkg/rollout"
)

// Known is what this scheduler knows of a unit's instances, for who decides in the same
// process what comes of it. Others hear it from Watch.
func (s *accounts) Known(unit *v1alpha1.Function) rollout.Known {
	f := s.lookup(uidOf(unit))
	if f == nil {
		return rollout.Known{}
	}
	n := s.facts(f)
	known := rollout.Known{
		Observed: true, Generation: n.generation, Started: n.started, Ready: int64(n.created),
		NoRoom: n.noRoom, Unconfirmed: n.unconfirmed,
	}
	if n.problem != "" {
		known.Failure = &rollout.Failure{Reason: n.problem, Message: n.detail}
	}
	return known
}
