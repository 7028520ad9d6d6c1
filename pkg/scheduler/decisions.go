package scheduler

import (
	"cmp"
	"slices"
	"sync"
	"time"

	"github.com/windlass-dev/windlass/pkg/autoscaler"
	"github.com/windlass-dev/windlass/pkg/autoscaler/decisionlog"
	"github.com/windlass-dev/windlass/pkg/invocation"
	"github.com/windlass-dev/windlass/pkg/provisioner"
)

// decisionLog keeps recent decisions for people who ask why.
type decisionLog struct {
	mu  sync.Mutex
	log *decisionlog.Log
}

func newDecisionLog() *decisionLog {
	return &decisionLog{log: decisionlog.NewLog(decisionlog.DefaultBounds())}
}

// addEntry adds a decision and its outcome.
func (d *decisionLog) addEntry(s *ticker, c *evaluation) {
	e := decisionlog.Entry{
		At: s.deps.Now(), Params: s.params(), Snapshot: c.Snapshot, Decision: c.Decision,
		Outcome: decisionlog.Outcome{
			Wanted:     c.Wanted(),
			Cancelled:  len(c.cancelled),
			Floor:      c.floor(),
			Placed:     decisionlog.Place(s.nodesOf(c.launched.Keys)),
			NoRoom:     c.launched.NoRoom,
			HeldBack:   s.heldBack(c),
			MakingRoom: s.placer.planner.Reserved(c.function.uid) > 0,
		},
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.log.Add(c.function.uid, e)
}

// heldBack is why the cluster keeps wanted instances from being launched.
func (s *ticker) heldBack(c *evaluation) decisionlog.HeldBack {
	if !c.attempted || len(c.launched.Keys) >= c.Wanted() {
		return decisionlog.HeldBack{}
	}
	why := s.deps.Instances.Observe(c.function.uid).Unavailable
	return decisionlog.HeldBack{Reason: invocation.Excerpt(why.Reason), For: why.RetryAt.Sub(why.At)}
}

// floor says which setting asks for the minimum, if the function has fewer instances.
func (c *evaluation) floor() decisionlog.Floor {
	f := decisionlog.Floor{Instances: c.Bounds.Min}
	switch {
	case c.Decision.Why == autoscaler.ReasonProof:
		f.Of = decisionlog.FloorProof
	case c.Decision.Why != autoscaler.ReasonMin:
		return decisionlog.Floor{}
	case c.Floor.Scheduled >= f.Instances:
		f.Of = decisionlog.FloorSchedule
	case c.Floor.Awaited >= f.Instances:
		f.Of = decisionlog.FloorAwaited
	default:
		f.Of = decisionlog.FloorSpec
	}
	return f
}

// nodesOf are the nodes on which instances of one function were launched.
func (s *host) nodesOf(keys []provisioner.Key) []string {
	if len(keys) == 0 {
		return nil
	}
	launched := make(map[provisioner.Key]bool, len(keys))
	for _, key := range keys {
		launched[key] = true
	}
	var nodes []string
	for _, in := range s.deps.Instances.Instances(keys[0].FunctionUID) {
		if launched[in.Key] {
			nodes = append(nodes, in.Node)
		}
	}
	return nodes
}

func (d *decisionLog) removeFunction(uid string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.log.Remove(uid)
}

func (d *decisionLog) last(uid string, n int) []decisionlog.Entry {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.log.Last(uid, n)
}

func (d *decisionLog) notable(uid string, since time.Time) (decisionlog.Entry, bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.log.Notable(uid, since)
}

func (d *decisionLog) recent(since time.Time, n int) (uids []string, more int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.log.Recent(since, n)
}

// reporter reports functions to people, metrics and the controller.
type reporter struct {
	*host
	decisions *decisionLog
	pools     *warmPools
}

// primary is the unit that represents a function where one answer is wanted: of the units that
// are served here, or else of all, the one with the most waiting and running calls, then the
// most instances, then the newest. It is nil if the function has no unit.
func (s *reporter) primary(units []*function) (first *function) {
	type weight struct{ served, calls, instances int }
	var most weight
	for _, f := range units {
		seen, view := s.deps.Instances.Observe(f.uid), f.view(s.deps.Now())
		w := weight{calls: view.Waiting + view.Busy, instances: seen.Created + seen.Creating}
		if s.term(f.slot) != notServed {
			w.served = 1
		}
		if first == nil || cmp.Or(cmp.Compare(w.served, most.served), cmp.Compare(w.calls, most.calls), cmp.Compare(w.instances, most.instances)) >= 0 {
			first, most = f, w
		}
	}
	return first
}

// Report returns the last decisions on a function; false if no function has that name. Of
// several revisions it reports the primary one. The load covers all revisions that are served
// here.
func (s *reporter) Report(key invocation.FunctionKey) (decisionlog.Report, bool) {
	entry, known := s.deps.Catalog.Get(key)
	if !known {
		return decisionlog.Report{}, false
	}
	units := s.functions.unitsOf(entry.UID())
	f := s.primary(units)
	if f == nil {
		// The function is too new: Run has not seen it yet, or it has no revision yet.
		return decisionlog.Report{Namespace: key.Namespace, Name: key.Name, Scheduler: s.config.ID, Decisions: []decisionlog.ReportEntry{}}, true
	}
	a := s.report(f, decisionlog.DefaultBounds().PerFunction)
	if len(units) > 1 {
		a.Revisions = len(units)
	}
	if a.Served {
		a.LastFailure, a.LastCoreWait, a.Load = f.lastFailure(), f.lastCoreWait(), s.load(units, f)
	}
	return a, true
}

// report returns the last n decisions on a unit.
func (s *reporter) report(f *function, n int) decisionlog.Report {
	fn := f.current()
	a := decisionlog.Report{Namespace: fn.Namespace, Name: fn.Name, Revision: fn.Revision(), Scheduler: s.config.ID, Decisions: []decisionlog.ReportEntry{}}
	if _, served := s.syncOwnership(f); !served {
		a.Owner = s.owner(f.slot).ID
		return a
	}
	seen := s.deps.Instances.Observe(f.uid)
	a.Decider = s.algorithm(fn)
	a.Served, a.ServedSince = true, f.servedSince()
	a.Calls, a.Instances = f.view(s.deps.Now()).Arrived, seen.Created
	if seen.Failing {
		a.Problem = seen.Why.Code
	}
	a.Decisions = decisionlog.ReportEntries(s.decisions.last(f.uid, n))
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
func (s *reporter) Latest() decisionlog.LatestReport {
	since := s.deps.Now().Add(-latestAge)
	uids, more := s.decisions.recent(since, latestFunctions)
	latest := decisionlog.LatestReport{Scheduler: s.config.ID, Functions: []decisionlog.Report{}, Broken: s.broken(latestFunctions), More: more}
	for _, uid := range uids {
		if f := s.lookup(uid); f != nil {
			a := s.report(f, 0)
			if e, known := s.decisions.notable(uid, since); a.Served && known {
				a.Decisions = decisionlog.ReportEntries([]decisionlog.Entry{e})
				latest.Functions = append(latest.Functions, a)
			}
		}
	}
	return latest
}

// broken returns at most n functions that cannot run.
func (s *reporter) broken(n int) []decisionlog.Broken {
	var all []decisionlog.Broken
	for _, f := range s.all() {
		seen := s.deps.Instances.Observe(f.uid)
		if !seen.Failing || seen.Created > 0 {
			continue
		}
		if _, served := s.syncOwnership(f); served {
			of := f.about()
			all = append(all, decisionlog.Broken{Namespace: of.key.Namespace, Name: of.key.Name, Revision: of.revision, Reason: seen.Why.Code})
		}
	}
	slices.SortFunc(all, func(a, b decisionlog.Broken) int {
		return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name), cmp.Compare(a.Revision, b.Revision))
	})
	return all[:min(len(all), n)]
}

// servedSince is when this scheduler took the slot over; zero if it does not serve it.
func (f *function) servedSince() time.Time {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.core.ServedSince().UTC()
}
