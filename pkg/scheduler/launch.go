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
func (e *evaluation) missing() int { return e.Missing(len(e.launched.Keys)) }

// starved reports whether the function has no instance, not even a starting one.
func (e *evaluation) starved() bool {
	return e.Observed.Created+e.Observed.Creating+len(e.launched.Keys) == 0
}

// want is the room that the function lacks.
func (e *evaluation) want() capacity.Want {
	return capacity.Want{
		UID: e.unit.uid, Namespace: e.fn.Namespace, Shape: e.shape,
		Missing: e.missing(), Starved: e.starved(), Waiting: e.Snapshot.Waiting(), OldestWait: e.Snapshot.OldestWait,
	}
}

// waited is for how long calls have waited for the function's first instance; 0 if none do.
func (e *evaluation) waited() time.Duration {
	return capacity.Waited(e.starved(), e.Snapshot.Waiting(), e.Snapshot.OldestWait)
}

// roundRobin orders functions by the turns in which room is made for them.
func roundRobin(all []*evaluation) []*evaluation {
	turns := make([]capacity.Contender, len(all))
	for i, e := range all {
		turns[i] = capacity.Contender{Index: i, Namespace: e.fn.Namespace, Waited: e.waited(), Last: e.Proves()}
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
func (t *ticker) allocate(all []*evaluation) {
	var wants []fairshare.Want
	var wanting []*evaluation
	for _, e := range all {
		if n := e.Wanted(); n > 0 {
			wants = append(wants, fairshare.Want{
				Namespace: e.fn.Namespace, Function: e.shareKey, N: n, Cost: e.shape.Requests.MilliCPU,
				Waited: e.waited(), Last: e.Proves(),
			})
			wanting = append(wanting, e)
		}
	}
	if len(wants) == 0 {
		return
	}
	round := t.budget.Allocate(wants, t.shell.deps.Now())
	for i, ok := round.Next(); ok; i, ok = round.Next() {
		round.Launched(t.launch(wanting[i], 1) == 1)
	}
}

// launch launches up to n instances and returns how many it could.
func (t *ticker) launch(e *evaluation, n int) int {
	if n <= 0 {
		return 0
	}
	e.attempted, e.launched.NoRoom = true, ""
	had := t.pools.assignSpares(e, n)
	if len(had) < n {
		launched := t.placer.launch(e.unit.uid, e.unitSpec, e.term, n-len(had))
		e.launched.NoRoom = launched.NoRoom
		had = append(had, launched.Keys...)
	}
	e.launched.Keys = append(e.launched.Keys, had...)
	t.shell.releaseIfUnserved(e.unit)
	now := t.shell.deps.Now()
	t.recordStarts(e.unit, had, e.wantedSince(now))
	t.budget.Spend(now, len(had))
	return len(had)
}

// recordStarts records launches, but for those of instances that are gone already: a driver that
// has too many to create ends them at once, and nobody would drop their record.
func (t *ticker) recordStarts(u *unit, keys []provisioner.Key, wanted time.Time) {
	u.addPendingStarts(keys, wanted)
	for _, key := range keys {
		if _, there := t.shell.deps.Instances.Lookup(key); !there {
			u.popStart(key.CID)
		}
	}
}

// noRoomAfter is why no node has room for an instance of the function, which was another reason or none
// before. A function without an instance goes on lacking room when its calls were refused or have left,
// so that its condition changes with the nodes and not with each call.
func (e *evaluation) noRoomAfter(before string) string {
	switch seen := e.Observed; {
	case e.attempted:
		return e.launched.NoRoom
	case e.Wanted() == 0 && (seen.Created+seen.Creating > 0 || seen.Room != 0):
		return ""
	}
	return before
}

// recordOutcome records the outcome of a decision to create instances. A launch that
// repeatedly has no effect is logged once.
func (t *ticker) recordOutcome(e *evaluation) {
	u, d, had := e.unit, e.Decision, len(e.launched.Keys)
	u.mu.Lock()
	defer u.mu.Unlock()
	u.stats.noRoom = e.noRoomAfter(u.stats.noRoom)
	e.lacksRoom = u.stats.noRoom != ""
	if e.Wanted() == 0 {
		return
	}
	u.stats.counters[instanceLaunched] += uint64(had)
	u.stats.peak = max(u.stats.peak, e.Snapshot.Created+e.Snapshot.Creating+had)
	placed, noRoom := had > 0, e.launched.NoRoom != "" && had == 0
	// Whatever the decision was for, operators look for what prevented it.
	why := d.Why
	if noRoom {
		why = autoscaler.ReasonNoRoom
	}
	u.stats.byReason.decisions.add(string(why), 1)
	if !e.attempted {
		u.stats.counters[launchDeferred]++
	}
	if !placed && (!noRoom || u.core.Blocked()) {
		return
	}
	log := t.shell.deps.Log.With("function", e.fn.Key().String(), "wanted", e.Wanted(), "waiting", e.Snapshot.Waiting(),
		"created", e.Snapshot.Created, "creating", e.Snapshot.Creating)
	if placed {
		log.Info("launched instances", "reason", string(d.Why), "launched", had)
		return
	}
	log.Warn("no node has room for an instance", "reason", e.launched.NoRoom)
	u.stats.events.add(unitEvent{reason: v1alpha1.ReasonNoCapacity, message: "no node has room for an instance: " + e.launched.NoRoom, warning: true}, t.shell.deps.Now())
}

const reasonUnwanted = "no longer needed"

// cancelSurplus cancels launches that are no longer wanted, the youngest first: first
// instances whose agents have not connected, then those whose agents wait for their function.
func (t *ticker) cancelSurplus(e *evaluation) {
	unwanted := e.Decision.Cancel
	if unwanted <= 0 {
		return
	}
	u := e.unit
	e.cancelled = t.shell.deps.Instances.CancelLaunches(u.uid, unwanted)
	e.cancelled = append(e.cancelled, t.cancelConnected(u, unwanted-len(e.cancelled))...)
	if n := len(e.cancelled); n > 0 {
		u.increment(instanceCancelled, n)
		t.shell.deps.Log.Info("cancelled instances that were being created", "function", e.fn.Key().String(),
			"wanted", unwanted, "cancelled", n, "reason", string(e.Decision.Why))
	}
}

// cancelConnected cancels up to n starting instances whose agents have connected. Former spare
// ones count as almost ready. An instance gets no more tickets before the check whether it
// could have got one.
func (t *ticker) cancelConnected(u *unit, n int) []provisioner.Key {
	if n <= 0 {
		return nil
	}
	heard := slices.DeleteFunc(t.shell.deps.Instances.Instances(u.uid), func(in provisioner.Instance) bool {
		return in.State != provisioner.Creating || in.Ran || in.Spare || !in.Connected
	})
	slices.SortFunc(heard, provisioner.YoungestFirst)
	heard = heard[:min(n, len(heard))]
	cancelled := make([]provisioner.Key, 0, len(heard))
	for _, in := range heard {
		t.shell.step(u, core.DrainRequested{CID: in.CID, Reason: reasonUnwanted})
		cancelled = append(cancelled, in.Key)
	}
	within := drainTime(u.fn())
	for _, in := range t.shell.deps.Instances.Instances(u.uid) {
		if slices.Contains(cancelled, in.Key) {
			t.shell.terminate(in, within)
		}
	}
	return cancelled
}
