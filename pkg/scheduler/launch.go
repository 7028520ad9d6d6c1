package scheduler

import (
	"slices"
	"time"

	"github.com/windlass-dev/windlass/api/v1alpha1"
	"github.com/windlass-dev/windlass/pkg/autoscaler"
	"github.com/windlass-dev/windlass/pkg/invocation"
	"github.com/windlass-dev/windlass/pkg/provisioner"
	"github.com/windlass-dev/windlass/pkg/provisioner/fairshare"
	"github.com/windlass-dev/windlass/pkg/scheduler/capacity"
	"github.com/windlass-dev/windlass/pkg/scheduler/core"
)

// evaluation is a function that a tick has decided on, with the outcome so far.
type evaluation struct {
	*core.Decided
	*unitSpec
	unit *unit
	term invocation.Term

	// launched is the outcome of the launches, and attempted says that some were requested.
	launched  provisioner.LaunchResult
	attempted bool
	// lacksRoom says that no node has room for an instance, as far as is known.
	lacksRoom bool
	// cancelled are the starting instances that were cancelled.
	cancelled []provisioner.Key
}

// missing is the number of needed instances that could not be launched.
func (c *evaluation) missing() int { return c.Missing(len(c.launched.Keys)) }

// starved reports whether the function has no instance, not even a starting one.
func (c *evaluation) starved() bool {
	return c.Observed.Created+c.Observed.Creating+len(c.launched.Keys) == 0
}

// want is the room that the function lacks.
func (c *evaluation) want() capacity.Want {
	return capacity.Want{
		UID: c.unit.uid, Namespace: c.fn.Namespace, Shape: c.shape,
		Missing: c.missing(), Starved: c.starved(), Waiting: c.Snapshot.Waiting(), OldestWait: c.Snapshot.OldestWait,
	}
}

// waited is for how long calls have waited for the function's first instance; 0 if none do.
func (c *evaluation) waited() time.Duration {
	return capacity.Waited(c.starved(), c.Snapshot.Waiting(), c.Snapshot.OldestWait)
}

// roundRobin orders functions by the turns in which room is made for them.
func roundRobin(all []*evaluation) []*evaluation {
	turns := make([]capacity.Contender, len(all))
	for i, c := range all {
		turns[i] = capacity.Contender{Index: i, Namespace: c.fn.Namespace, Waited: c.waited(), Last: c.Proves()}
	}
	capacity.RoundRobin(turns)
	sorted := make([]*evaluation, len(all))
	for i, t := range turns {
		sorted[i] = all[t.Index]
	}
	return sorted
}

// allocate launches what all functions want, within the launch rate and in turns of their
// namespaces.
func (s *ticker) allocate(all []*evaluation) {
	var wants []fairshare.Want
	var wanting []*evaluation
	for _, c := range all {
		if n := c.Wanted(); n > 0 {
			wants = append(wants, fairshare.Want{
				Namespace: c.fn.Namespace, Function: c.shareKey, N: n, Cost: c.shape.Requests.MilliCPU,
				Waited: c.waited(), Last: c.Proves(),
			})
			wanting = append(wanting, c)
		}
	}
	if len(wants) == 0 {
		return
	}
	round := s.budget.Allocate(wants, s.shell.deps.Now())
	for i, ok := round.Next(); ok; i, ok = round.Next() {
		round.Launched(s.launch(wanting[i], 1) == 1)
	}
}

// launch launches up to n instances and returns how many it could.
func (s *ticker) launch(c *evaluation, n int) int {
	if n <= 0 {
		return 0
	}
	c.attempted, c.launched.NoRoom = true, ""
	had := s.pools.assignSpares(c, n)
	if len(had) < n {
		launched := s.placer.launch(c.unit.uid, c.unitSpec, c.term, n-len(had))
		c.launched.NoRoom = launched.NoRoom
		had = append(had, launched.Keys...)
	}
	c.launched.Keys = append(c.launched.Keys, had...)
	s.shell.releaseIfUnserved(c.unit)
	now := s.shell.deps.Now()
	s.recordStarts(c.unit, had, c.wantedSince(now))
	s.budget.Spend(now, len(had))
	return len(had)
}

// recordStarts records launches, but for those of instances that are gone already: a driver that
// has too many to create ends them at once, and nobody would drop their record.
func (s *ticker) recordStarts(f *unit, keys []provisioner.Key, wanted time.Time) {
	f.addPendingStarts(keys, wanted)
	for _, key := range keys {
		if _, there := s.shell.deps.Instances.Lookup(key); !there {
			f.popStart(key.CID)
		}
	}
}

// noRoomAfter is why no node has room for an instance of the function, which was another reason or none
// before. A function without an instance goes on lacking room when its calls were refused or have left,
// so that its condition changes with the nodes and not with each call.
func (c *evaluation) noRoomAfter(before string) string {
	switch seen := c.Observed; {
	case c.attempted:
		return c.launched.NoRoom
	case c.Wanted() == 0 && (seen.Created+seen.Creating > 0 || seen.Room != 0):
		return ""
	}
	return before
}

// recordOutcome records the outcome of a decision to create instances. A launch that
// repeatedly has no effect is logged once.
func (s *ticker) recordOutcome(c *evaluation) {
	f, d, had := c.unit, c.Decision, len(c.launched.Keys)
	f.mu.Lock()
	defer f.mu.Unlock()
	f.stats.noRoom = c.noRoomAfter(f.stats.noRoom)
	c.lacksRoom = f.stats.noRoom != ""
	if c.Wanted() == 0 {
		return
	}
	f.stats.counters[instanceLaunched] += uint64(had)
	f.stats.peak = max(f.stats.peak, c.Snapshot.Created+c.Snapshot.Creating+had)
	placed, noRoom := had > 0, c.launched.NoRoom != "" && had == 0
	// Whatever the decision was for, operators look for what prevented it.
	why := d.Why
	if noRoom {
		why = autoscaler.ReasonNoRoom
	}
	f.stats.byReason.decisions.add(string(why), 1)
	if !c.attempted {
		f.stats.counters[launchDeferred]++
	}
	if !placed && (!noRoom || f.core.Blocked()) {
		return
	}
	log := s.shell.deps.Log.With("function", c.fn.Key().String(), "wanted", c.Wanted(), "waiting", c.Snapshot.Waiting(),
		"created", c.Snapshot.Created, "creating", c.Snapshot.Creating)
	if placed {
		log.Info("launched instances", "reason", string(d.Why), "launched", had)
		return
	}
	log.Warn("no node has room for an instance", "reason", c.launched.NoRoom)
	f.stats.events.add(unitEvent{reason: v1alpha1.ReasonNoCapacity, message: "no node has room for an instance: " + c.launched.NoRoom, warning: true}, s.shell.deps.Now())
}

const reasonUnwanted = "no longer needed"

// cancelSurplus cancels launches that are no longer wanted, the youngest first: first
// instances whose agents have not connected, then those whose agents wait for their function.
func (s *ticker) cancelSurplus(c *evaluation) {
	unwanted := c.Decision.Cancel
	if unwanted <= 0 {
		return
	}
	f := c.unit
	c.cancelled = s.shell.deps.Instances.CancelLaunches(f.uid, unwanted)
	c.cancelled = append(c.cancelled, s.cancelConnected(f, unwanted-len(c.cancelled))...)
	if n := len(c.cancelled); n > 0 {
		f.increment(instanceCancelled, n)
		s.shell.deps.Log.Info("cancelled instances that were being created", "function", c.fn.Key().String(),
			"wanted", unwanted, "cancelled", n, "reason", string(c.Decision.Why))
	}
}

// cancelConnected cancels up to n starting instances whose agents have connected. Former spare
// ones count as almost ready. An instance gets no more tickets before the check whether it
// could have got one.
func (s *ticker) cancelConnected(f *unit, n int) []provisioner.Key {
	if n <= 0 {
		return nil
	}
	heard := slices.DeleteFunc(s.shell.deps.Instances.Instances(f.uid), func(in provisioner.Instance) bool {
		return in.State != provisioner.Creating || in.Ran || in.Spare || !in.Connected
	})
	slices.SortFunc(heard, provisioner.YoungestFirst)
	heard = heard[:min(n, len(heard))]
	cancelled := make([]provisioner.Key, 0, len(heard))
	for _, in := range heard {
		s.shell.step(f, core.DrainRequested{CID: in.CID, Reason: reasonUnwanted})
		cancelled = append(cancelled, in.Key)
	}
	within := drainTime(f.fn())
	for _, in := range s.shell.deps.Instances.Instances(f.uid) {
		if slices.Contains(cancelled, in.Key) {
			s.shell.terminate(in, within)
		}
	}
	return cancelled
}
