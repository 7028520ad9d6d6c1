package scheduler

import (
	"cmp"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/windlass-dev/windlass/api/v1alpha1"
	"github.com/windlass-dev/windlass/pkg/autoscaler/decisionlog"
	"github.com/windlass-dev/windlass/pkg/invocation"
	"github.com/windlass-dev/windlass/pkg/provisioner"
	"github.com/windlass-dev/windlass/pkg/rollout"
)

// reporter reports functions to people, metrics and the controller.
type reporter struct {
	shell     *shell
	decisions *decisionLog
	pools     *warmPools
}

// primary is the unit that represents a function where one answer is wanted: of the units that
// are served here, or else of all, the one with the most waiting and running calls, then the
// most instances, then the newest. It is nil if the function has no unit.
func (r *reporter) primary(units []*unit) (first *unit) {
	type weight struct{ served, calls, instances int }
	var most weight
	for _, u := range units {
		seen, view := r.shell.deps.Instances.Observe(u.uid), u.view(r.shell.deps.Now())
		w := weight{calls: view.Waiting + view.Busy, instances: seen.Created + seen.Creating}
		if r.shell.slots.term(u.slot) != notServed {
			w.served = 1
		}
		if first == nil || cmp.Or(cmp.Compare(w.served, most.served), cmp.Compare(w.calls, most.calls), cmp.Compare(w.instances, most.instances)) >= 0 {
			first, most = u, w
		}
	}
	return first
}

// Status is what the scheduler observes of a function, or of a single unit. The instances are
// those of all its units; the condition is that of the primary unit.
func (r *reporter) Status(fn *v1alpha1.Function) v1alpha1.FunctionStatus {
	units := r.shell.units.unitsOf(uidOf(fn))
	first := r.primary(units)
	if first == nil {
		return v1alpha1.FunctionStatus{}
	}
	status := v1alpha1.FunctionStatus{
		ObservedGeneration: first.readOutline().generation,
		Conditions:         []metav1.Condition{r.ready(first, r.shell.deps.Instances.Observe(first.uid))},
	}
	for _, u := range units {
		seen := r.shell.deps.Instances.Observe(u.uid)
		status.Instances.Ready += int32(seen.Created)
		status.Instances.Desired += int32(seen.Created + seen.Creating)
	}
	return status
}

// load is the load of the units that are served here; the means are those of the primary one.
func (r *reporter) load(units []*unit, primary *unit) *decisionlog.Load {
	means := primary.means().Round(10 * time.Microsecond)
	load := &decisionlog.Load{MeanExecution: means.Execution.Seconds(), MeanStart: means.Start.Seconds()}
	for _, u := range units {
		if _, served := r.shell.syncOwnership(u); !served {
			continue
		}
		seen, view := r.shell.deps.Instances.Observe(u.uid), u.view(r.shell.deps.Now())
		load.Creating += seen.Creating
		load.Busy += min(view.Busy, seen.Created)
		load.Idle += max(0, seen.Created-view.Busy)
		load.Waiting += view.Waiting
	}
	return load
}

// ready is the Ready condition. It describes the version of the function that the scheduler
// has applied, which may be older than the requested one.
func (r *reporter) ready(u *unit, seen provisioner.Observation) metav1.Condition {
	generation, since, started := u.state()
	c := metav1.Condition{
		Type:               v1alpha1.ConditionReady,
		Status:             metav1.ConditionTrue,
		Reason:             v1alpha1.ReasonAccepted,
		Message:            v1alpha1.MessageAccepted,
		ObservedGeneration: generation,
		// The state before that is unknown: the function may have failed until then.
		LastTransitionTime: metav1.NewTime(since),
	}
	if started {
		c.Reason, c.Message = v1alpha1.ReasonStarted, v1alpha1.MessageStarted
	}
	if why, broken := brokenBy(seen); broken {
		c.Status = metav1.ConditionFalse
		c.Reason = why.Code
		c.Message = why.String()
		c.LastTransitionTime = metav1.NewTime(why.At)
	}
	return c
}

// brokenBy says why a unit cannot run: it has no instance, and its instances do not start.
func brokenBy(seen provisioner.Observation) (why provisioner.StartFailure, broken bool) {
	return seen.Why, seen.Failing && seen.Created == 0
}

// state returns the generation of the unit, when this scheduler learned of it, and whether
// an instance of it has started.
func (u *unit) state() (generation int64, since time.Time, started bool) {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.generation, u.stats.since, u.stats.started
}

// Known returns the facts about a unit's instances for a rollout that is decided in the same
// process. Other processes get them from Watch.
func (r *reporter) Known(unit *v1alpha1.Function) rollout.Observation {
	u := r.shell.lookup(uidOf(unit))
	if u == nil {
		return rollout.Observation{}
	}
	n := r.facts(u)
	known := rollout.Observation{
		Observed: true, Generation: n.generation, Started: n.started, Ready: int64(n.created),
		NoRoom: n.noRoom, Unconfirmed: n.unconfirmed,
	}
	if n.problem != "" {
		known.Failure = &rollout.Failure{Reason: n.problem, Message: n.detail}
	}
	return known
}

// Report returns the last decisions on a function; false if no function has that name. Of
// several revisions it reports the primary one. The load covers all revisions that are served
// here.
func (r *reporter) Report(key invocation.FunctionKey) (decisionlog.Report, bool) {
	entry, known := r.shell.deps.Catalog.Get(key)
	if !known {
		return decisionlog.Report{}, false
	}
	units := r.shell.units.unitsOf(entry.UID())
	u := r.primary(units)
	if u == nil {
		// The function is too new: Run has not seen it yet, or it has no revision yet.
		return decisionlog.Report{Namespace: key.Namespace, Name: key.Name, Scheduler: r.shell.config.ID, Decisions: []decisionlog.ReportEntry{}}, true
	}
	a := r.report(u, decisionlog.DefaultBounds().PerFunction)
	if len(units) > 1 {
		a.Revisions = len(units)
	}
	if a.Served {
		a.LastFailure, a.LastCoreWait, a.Load = u.lastFailure(), u.lastCoreWait(), r.load(units, u)
	}
	return a, true
}

// report returns the last n decisions on a unit.
func (r *reporter) report(u *unit, n int) decisionlog.Report {
	fn := u.fn()
	a := decisionlog.Report{Namespace: fn.Namespace, Name: fn.Name, Revision: fn.Revision(), Scheduler: r.shell.config.ID, Decisions: []decisionlog.ReportEntry{}}
	if _, served := r.shell.syncOwnership(u); !served {
		a.Owner = r.shell.slots.owner(u.slot).ID
		return a
	}
	seen := r.shell.deps.Instances.Observe(u.uid)
	a.Decider = r.shell.algorithm(fn)
	a.Served, a.ServedSince = true, u.servedSince()
	a.Calls, a.Instances = u.view(r.shell.deps.Now()).Arrived, seen.Created
	if seen.Failing {
		a.Problem = seen.Why.Code
	}
	a.Decisions = decisionlog.ReportEntries(r.decisions.last(u.uid, n))
	return a
}

// Bounds of Latest.
const (
	latestFunctions = 1000
	latestAge       = time.Minute
)

// Latest returns a decision on each function that had one in the last minute, newest first, at
// most 1,000; every function with calls or starting instances has one. It is the last one of that
// minute that changed the number of instances, or else the last one. It lists functions that
// cannot run for as long as they cannot. Each revision has its own entry.
func (r *reporter) Latest() decisionlog.LatestReport {
	since := r.shell.deps.Now().Add(-latestAge)
	uids, more := r.decisions.recent(since, latestFunctions)
	latest := decisionlog.LatestReport{Scheduler: r.shell.config.ID, Functions: []decisionlog.Report{}, Broken: r.broken(latestFunctions), More: more}
	for _, uid := range uids {
		if u := r.shell.lookup(uid); u != nil {
			a := r.report(u, 0)
			if e, known := r.decisions.notable(uid, since); a.Served && known {
				a.Decisions = decisionlog.ReportEntries([]decisionlog.Entry{e})
				latest.Functions = append(latest.Functions, a)
			}
		}
	}
	return latest
}

// broken returns at most n functions that cannot run.
func (r *reporter) broken(n int) []decisionlog.Broken {
	var all []decisionlog.Broken
	for _, u := range r.shell.all() {
		seen := r.shell.deps.Instances.Observe(u.uid)
		if !seen.Failing || seen.Created > 0 {
			continue
		}
		if _, served := r.shell.syncOwnership(u); served {
			of := u.readOutline()
			all = append(all, decisionlog.Broken{Namespace: of.key.Namespace, Name: of.key.Name, Revision: of.revision, Reason: seen.Why.Code})
		}
	}
	slices.SortFunc(all, func(a, b decisionlog.Broken) int {
		return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name), cmp.Compare(a.Revision, b.Revision))
	})
	return all[:min(len(all), n)]
}

// servedSince is when this scheduler took the slot over; zero if it does not serve it.
func (u *unit) servedSince() time.Time {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.core.ServedSince().UTC()
}

// Totals counts what was launched for a function since the scheduler started.
type Totals struct {
	// Launched is the number of launched instances, and Peak the highest number that existed or
	// were starting at one time.
	Launched, Peak int
}

// Totals returns the totals of a unit, or the sums over all existing units of a function.
func (r *reporter) Totals(uid string) (t Totals) {
	for _, u := range r.shell.units.unitsOf(uid) {
		u.mu.Lock()
		t.Launched += int(u.stats.counters[instanceLaunched])
		t.Peak += u.stats.peak
		u.mu.Unlock()
	}
	return t
}
