package scheduler

import (
	"github.com/windlass-dev/windlass/api/v1alpha1"
	"github.com/windlass-dev/windlass/pkg/autoscaler"
	"github.com/windlass-dev/windlass/pkg/scheduler/core"
)

// algorithm is the name of a function's: that which it tries, or that of the
// configuration.
func (s *host) algorithm(fn *v1alpha1.Function) string {
	if _, known := autoscaler.ByName(fn.Algorithm()); known {
		return fn.Algorithm()
	}
	return s.config.Decider
}

func (s *host) decider(fn *v1alpha1.Function) autoscaler.Decider {
	d, _ := autoscaler.ByName(s.algorithm(fn)) // which Config.Validate knows
	return d
}

// params are the deciders' constants.
func (s *host) params() autoscaler.Params {
	return autoscaler.Params{Tick: s.config.Tick, StaleAfter: core.StaleAfter}
}

// observe is what a tick sees of a function one level below. The instances come first,
// and the queue, which the core looks at, second: a ticket that is pulled in between is
// seen as a busy instance, and not twice.
func (s *ticker) observe(f *function, u *unit) core.Observed {
	seen := s.deps.Instances.Observe(f.uid)
	_, orphan := s.deps.Keeper.Orphan()
	return core.Observed{
		Created: seen.Created, Creating: seen.Creating, Awaited: seen.Awaited,
		Failing: seen.Failing, Room: s.placer.room(u) + s.spareRoom(f, u.fn), KindStart: s.starts.mean(kindOf(u.fn)), Unconfirmed: orphan,
	}
}
