package cluster

import (
	"strconv"
	"time"

	"github.com/windlass-dev/windlass/pkg/provisioner/placement"
	"github.com/windlass-dev/windlass/pkg/scheduler/capacity"
	"github.com/windlass-dev/windlass/pkg/scheduler/core"
)

// shapeOf is what the room for an instance of a function depends on: all may run on all
// nodes.
func shapeOf(f *function) capacity.Shape { return capacity.Shape{Requests: f.class.Requests} }

// joined lets the planner know of new nodes.
func (s *scheduler) joined(int) {
	nodes := make([]placement.Node, len(s.machines))
	for i, m := range s.machines {
		nodes[i] = m.Node
	}
	s.planner.Track("", placement.Candidates{Nodes: nodes})
}

func (s *scheduler) vacated(in *instance) {
	s.planner.Ended(s.machines[in.node].Name, in.function.class.Requests)
}

// machineOf is the number of the machine of that name.
func (s *scheduler) machineOf(node string) int {
	number, _ := strconv.Atoi(node) // the planner has the name from joined
	return number
}

// functionOf is the function of that name.
func (s *scheduler) functionOf(uid string) *function {
	index, _ := strconv.Atoi(uid)
	return s.functions[index]
}

// planRoom begins a tick of the planner, unless that has begun since the last tick was due:
// ticks with nothing to do are left out.
func (s *scheduler) planRoom() {
	due := s.now.Truncate(s.config.Tick)
	if s.planned == due {
		return
	}
	s.planned = due
	for _, key := range s.planner.Leaving() {
		if f := s.functionOf(key.FunctionUID); f.instances[key.CID] == nil {
			s.planner.Left(key)
		}
	}
	s.planner.BeginTick(instant(due))
}

// gather lets the planner know of instances that may be evicted, once in a tick.
func (s *scheduler) gather(now time.Time) {
	if s.planner.Gathered() {
		return
	}
	changed := s.doubted
	for _, uid := range s.planner.Due(now) {
		changed = append(changed, s.functionOf(uid))
	}
	usages := make(map[string]capacity.Usage, len(changed))
	for _, f := range changed {
		usages[f.name] = s.usage(f, now)
		f.doubted = false
	}
	clear(changed)
	s.doubted = changed[:0]
	s.planner.Update(usages)
	s.planner.Gather(now)
}

// usage is what the instances of a function amount to.
func (s *scheduler) usage(f *function, now time.Time) (u capacity.Usage) {
	if len(f.instances) == 0 {
		return u
	}
	u.Namespace = f.class.Namespace
	u.MilliCPU = max(1, f.class.Requests.MilliCPU) * int64(len(f.instances))
	for _, in := range f.starting {
		u.Moving = append(u.Moving, s.machines[in.node].Name)
	}
	idle, until := f.core.Evictable(now, s.kindStart(f))
	u.Until = until
	for _, i := range idle {
		u.Idle = append(u.Idle, capacity.Idle{
			Key:  capacity.Key{FunctionUID: f.name, CID: i.CID},
			Node: s.machines[f.instances[i.CID].node].Name, Requests: f.class.Requests, Namespace: f.class.Namespace,
			Since: i.Since,
		})
	}
	return u
}

// evict lets an instance go for a function's, unless it has been needed since it was
// looked at.
func (s *scheduler) evict(e capacity.Evict) bool {
	f := s.functionOf(e.FunctionUID)
	_, let := core.AnswerOf[core.Terminate](s.step(f, core.EvictRequested{CID: e.CID, IdleFor: e.For, KindStart: s.kindStart(f)}))
	return let
}
