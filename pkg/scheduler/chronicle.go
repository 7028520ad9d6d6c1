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

// chronicle keeps what was decided lately, for people who ask why.
type chronicle struct {
	mu   sync.Mutex
	book *decisionlog.Book
}

func newChronicle() *chronicle {
	return &chronicle{book: decisionlog.NewBook(decisionlog.DefaultBounds())}
}

// keep takes down a decision and what became of it.
func (ch *chronicle) keep(s *ticker, c *considered) {
	e := decisionlog.Entry{
		At: s.deps.Now(), Params: s.params(), Snapshot: c.Snapshot, Decision: c.Decision,
		Outcome: decisionlog.Outcome{
			Wanted:     c.Wanted(),
			Withdrawn:  len(c.withdrawn),
			Floor:      c.floor(),
			Placed:     decisionlog.Place(s.nodesOf(c.ordered.Keys)),
			NoRoom:     c.ordered.NoRoom,
			MakingRoom: s.placer.planner.Reserved(c.function.uid) > 0,
		},
	}
	ch.mu.Lock()
	defer ch.mu.Unlock()
	ch.book.Add(c.function.uid, e)
}

// floor says what asks for the least instances, if there are fewer.
func (c *considered) floor() decisionlog.Floor {
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

// nodesOf are the nodes that instances of one function were ordered on.
func (s *host) nodesOf(keys []provisioner.Key) []string {
	if len(keys) == 0 {
		return nil
	}
	ordered := make(map[provisioner.Key]bool, len(keys))
	for _, key := range keys {
		ordered[key] = true
	}
	var nodes []string
	for _, in := range s.deps.Instances.Instances(keys[0].FunctionUID) {
		if ordered[in.Key] {
			nodes = append(nodes, in.Node)
		}
	}
	return nodes
}

func (ch *chronicle) forget(uid string) {
	ch.mu.Lock()
	defer ch.mu.Unlock()
	ch.book.Forget(uid)
}

func (ch *chronicle) last(uid string, n int) []decisionlog.Entry {
	ch.mu.Lock()
	defer ch.mu.Unlock()
	return ch.book.Last(uid, n)
}

func (ch *chronicle) recent(since time.Time, n int) (uids []string, more int) {
	ch.mu.Lock()
	defer ch.mu.Unlock()
	return ch.book.Recent(since, n)
}

// accounts tells people, metrics and the controller about functions.
type accounts struct {
	*host
	chronicle *chronicle
	pools     *warmPools
}

// foremost is the unit that speaks for a function where one answer is wanted: of those that
// are served here, or else of all, the one with the most calls that wait or run, then with
// the most instances, then the last one made. It is nil if there is none.
func (s *accounts) foremost(units []*function) (first *function) {
	type weight struct{ served, calls, instances int }
	var most weight
	for _, f := range units {
		seen, view := s.deps.Instances.Observe(f.uid), f.view(s.deps.Now())
		w := weight{calls: view.Waiting + view.Busy, instances: seen.Created + seen.Creating}
		if s.term(f.slot) != none {
			w.served = 1
		}
		if first == nil || cmp.Or(cmp.Compare(w.served, most.served), cmp.Compare(w.calls, most.calls), cmp.Compare(w.instances, most.instances)) >= 0 {
			first, most = f, w
		}
	}
	return first
}

// Account tells of the last decisions on a function; false if there is no function
// of that name. Of several revisions it tells of the one that is foremost; the load is that
// of all which are served here.
func (s *accounts) Account(key invocation.FunctionKey) (decisionlog.Account, bool) {
	entry, known := s.deps.Catalog.Get(key)
	if !known {
		return decisionlog.Account{}, false
	}
	units := s.functions.unitsOf(entry.UID())
	f := s.foremost(units)
	if f == nil {
		// It is so new that Run has not heard of it, or has no revision yet.
		return decisionlog.Account{Namespace: key.Namespace, Name: key.Name, Scheduler: s.config.ID, Decisions: []decisionlog.Told{}}, true
	}
	a := s.account(f, decisionlog.DefaultBounds().PerFunction)
	if a.Served {
		a.LastFailure, a.Load = f.lastFailure(), s.load(units, f)
	}
	return a, true
}

// account tells of the last n decisions on a unit.
func (s *accounts) account(f *function, n int) decisionlog.Account {
	fn := f.current()
	a := decisionlog.Account{Namespace: fn.Namespace, Name: fn.Name, Revision: fn.Revision(), Scheduler: s.config.ID, Decisions: []decisionlog.Told{}}
	if _, served := s.serves(f); !served {
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
	a.Decisions = decisionlog.Tell(s.chronicle.last(f.uid, n))
	return a
}

// What Latest tells of.
const (
	latestFunctions = 1000
	latestAge       = time.Minute
)

// Latest tells of the last decision on each function that was decided on in the last
// minute, which all are that have calls or are getting instances; at most 1,000, the
// last one first. Functions that cannot run are told of for as long as that is so. Each
// revision is told of for itself.
func (s *accounts) Latest() decisionlog.Latest {
	uids, more := s.chronicle.recent(s.deps.Now().Add(-latestAge), latestFunctions)
	latest := decisionlog.Latest{Scheduler: s.config.ID, Functions: []decisionlog.Account{}, Broken: s.broken(latestFunctions), More: more}
	for _, uid := range uids {
		if f := s.lookup(uid); f != nil {
			if a := s.account(f, 1); a.Served {
				latest.Functions = append(latest.Functions, a)
			}
		}
	}
	return latest
}

// broken are the functions that cannot run, at most n.
func (s *accounts) broken(n int) []decisionlog.Broken {
	var all []decisionlog.Broken
	for _, f := range s.all() {
		seen := s.deps.Instances.Observe(f.uid)
		if !seen.Failing || seen.Created > 0 {
			continue
		}
		if _, served := s.serves(f); served {
			fn := f.current()
			all = append(all, decisionlog.Broken{Namespace: fn.Namespace, Name: fn.Name, Revision: fn.Revision(), Reason: seen.Why.Code})
		}
	}
	slices.SortFunc(all, func(a, b decisionlog.Broken) int {
		return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name), cmp.Compare(a.Revision, b.Revision))
	})
	return all[:min(len(all), n)]
}

// servedSince is when the slot was taken over; zero if it was not.
func (f *function) servedSince() time.Time {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.core.ServedSince().UTC()
}
