package scheduler

import (
	"time"

	"github.com/windlass-dev/windlass/pkg/provisioner"
	"github.com/windlass-dev/windlass/pkg/provisioner/nodepick"
	"github.com/windlass-dev/windlass/pkg/provisioner/spare"
)

// gather finds out which instances may go, what each namespace uses, and on which nodes
// something is moving.
func (s *Scheduler) gather(known *crowd, now time.Time) {
	forgot := s.rooms.moves.begin(now, s.config.Tick)
	anew := s.enroll(now)
	r := s.rooms.roster
	*known = crowd{
		gathered: true, lacked: known.lacked, clearings: make(map[string]*nodepick.Clearing), used: r.used, total: r.total,
		idle: make([]nodepick.Idle, 0, len(r.idle)), whose: make([]idler, 0, len(r.idle)),
	}
	for _, i := range r.idle {
		if idle := i.idleFor(now); idle > 0 {
			known.idle = append(known.idle, nodepick.Idle{Node: i.node, Requests: i.requests, For: idle, Group: i.group})
			known.whose = append(known.whose, i)
		}
	}
	known.gone = make([]bool, len(known.idle))
	if forgot {
		anew = r.idle
	}
	for _, i := range anew {
		if i.function != nil {
			s.rooms.moves.touch(i.node, i.since)
		}
	}
	for _, one := range r.moving {
		for _, node := range one.moving {
			s.rooms.moves.touch(node, now)
		}
	}
}

// enroll brings the roster up to date and returns the idle instances that are new to it,
// among others.
func (s *Scheduler) enroll(now time.Time) []idler {
	if s.rooms.roster == nil {
		s.rooms.roster = newRoster()
	}
	changed := s.rooms.roster.due(now)
	for _, f := range s.doubts.take() {
		changed = append(changed, f.uid)
	}
	changed = s.deps.Instances.Moved(changed)
	anew := make(map[string]*standing, len(changed))
	var list []provisioner.Placed
	for _, uid := range changed {
		if anew[uid] == nil {
			list = s.deps.Instances.Placed(list[:0], uid)
			anew[uid] = s.standing(uid, list, now)
		}
	}
	return s.rooms.roster.update(anew)
}

// mistrust has the roster made anew when it is next asked for: a change that nobody noted
// is made up for when every other level of what is believed is looked at.
func (s *Scheduler) mistrust() {
	s.doubts.take()
	s.deps.Instances.ForgetMoves()
	s.rooms.roster = nil
}

// standing is what the instances of one function, or of one pool, come to.
func (s *Scheduler) standing(uid string, list []provisioner.Placed, now time.Time) *standing {
	one, created := &standing{}, 0
	_, pool := spare.PoolOf(uid)
	for _, in := range list {
		if in.State != provisioner.Created {
			one.moving = append(one.moving, in.Node)
		}
		switch {
		case in.State == provisioner.Leaving:
		case pool:
			one.idle = append(one.idle, idler{key: in.Key, node: in.Node, requests: in.Requests, group: spareGroup, since: in.Ordered})
		default:
			created++
		}
	}
	if f := s.lookup(uid); f != nil && created > 0 {
		s.standingOf(one, f, list, created, now)
	}
	return one
}

// standingOf is what a function's instances come to that work, or are to.
func (s *Scheduler) standingOf(one *standing, f *function, list []provisioner.Placed, created int, now time.Time) {
	fn := f.current()
	one.namespace = fn.Namespace
	one.cost = max(1, s.deps.Instances.Requests(fn).MilliCPU) * int64(created)
	if f.broker.Waiting() > 0 {
		return
	}
	kept := s.upkeepNow(f)
	one.until = kept.Change
	if kept.Planned && f.means().Start == 0 {
		one.until = now // it goes by the starts of others, which are not followed
	}
	policy := evictPolicy(fn, kept, 0) // one that has just become idle may go later
	idle := f.broker.LongestIdle(policy)
	if len(idle) == 0 {
		return
	}
	working := make(map[string]provisioner.Placed, len(list))
	for _, in := range list {
		if in.State == provisioner.Created {
			working[string(in.CID)] = in
		}
	}
	for _, i := range idle {
		if in, works := working[string(i.CID)]; works {
			one.idle = append(one.idle, idler{in.Key, f, in.Node, in.Requests, fn.Namespace, i.Since})
		}
	}
}
