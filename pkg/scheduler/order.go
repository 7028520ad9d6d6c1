package scheduler

import (
	"time"

	"github.com/windlass-dev/windlass/api/v1alpha1"
	"github.com/windlass-dev/windlass/pkg/invocation"
	"github.com/windlass-dev/windlass/pkg/provisioner"
	"github.com/windlass-dev/windlass/pkg/provisioner/fairshare"
	"github.com/windlass-dev/windlass/pkg/scheduler/capacity"
	"github.com/windlass-dev/windlass/pkg/scheduler/core"
)

// considered is a function that a tick has decided on.
type considered struct {
	*core.Decided
	*unit
	function *function
	term     invocation.Term

	// ordered is what became of its orders, and asked says that there were any.
	ordered provisioner.LaunchResult
	asked   bool
	// withdrawn are those of the instances being created that were ended.
	withdrawn []provisioner.Key
}

// missing is how many of those could not be ordered.
func (c *considered) missing() int { return c.Wanted() - len(c.ordered.Keys) }

// starved tells whether the function has no instance that works or comes.
func (c *considered) starved() bool {
	return c.Observed.Created+c.Observed.Creating+len(c.ordered.Keys) == 0
}

// want is what the function lacks.
func (c *considered) want() capacity.Want {
	return capacity.Want{
		UID: c.function.uid, Namespace: c.fn.Namespace, Shape: c.shape,
		Missing: c.missing(), Starved: c.starved(), Waiting: c.Snapshot.Waiting(), OldestWait: c.Snapshot.OldestWait,
	}
}

// waited is for how long calls have waited for the function's first instance; 0 if none do.
func (c *considered) waited() time.Duration {
	return capacity.Waited(c.starved(), c.Snapshot.Waiting(), c.Snapshot.OldestWait)
}

// inTurns are functions in the order in which room is made for them.
func inTurns(all []*considered) []*considered {
	turns := make([]capacity.Contender, len(all))
	for i, c := range all {
		turns[i] = capacity.Contender{Index: i, Namespace: c.fn.Namespace, Waited: c.waited(), Last: c.Proves()}
	}
	capacity.RoundRobin(turns)
	sorted := make([]*considered, len(all))
	for i, t := range turns {
		sorted[i] = all[t.Index]
	}
	return sorted
}

// divide orders what all functions want, as far as it may be created now, and in
// turns of their namespaces.
func (s *ticker) divide(all []*considered) {
	var wants []fairshare.Want
	var wanting []*considered
	for _, c := range all {
		if n := c.Wanted(); n > 0 {
			wants = append(wants, fairshare.Want{
				Namespace: c.fn.Namespace, Function: c.turns, N: n, Cost: c.shape.Requests.MilliCPU,
				Waited: c.waited(), Last: c.Proves(),
			})
			wanting = append(wanting, c)
		}
	}
	if len(wants) == 0 {
		return
	}
	round := s.budget.Allocate(wants, s.deps.Now())
	for i, n, ok := round.Next(); ok; i, n, ok = round.Next() {
		round.Launched(s.order(wanting[i], n), n)
	}
}

// order orders up to n instances and returns how many could be had.
func (s *ticker) order(c *considered, n int) int {
	if n <= 0 {
		return 0
	}
	c.asked, c.ordered.NoRoom = true, ""
	had := s.takeSpares(c, n)
	if len(had) < n {
		ordered := s.placer.order(c.function.uid, c.unit, c.term, n-len(had))
		c.ordered.NoRoom = ordered.NoRoom
		had = append(had, ordered.Keys...)
	}
	c.ordered.Keys = append(c.ordered.Keys, had...)
	now := s.deps.Now()
	c.function.ordered(had, c.wantedSince(now))
	s.budget.Spend(now, len(had))
	return len(had)
}

// report keeps what became of a decision to create instances. An order that stays
// without effect is logged once.
func (s *ticker) report(c *considered) {
	f, d, had := c.function, c.Decision, len(c.ordered.Keys)
	f.mu.Lock()
	defer f.mu.Unlock()
	if c.asked {
		f.book.noRoom = c.ordered.NoRoom
	}
	if c.Wanted() == 0 {
		return
	}
	f.book.tally[instanceOrdered] += uint64(had)
	f.book.peak = max(f.book.peak, c.Snapshot.Created+c.Snapshot.Creating+had)
	f.book.tallies.decisions.add(string(d.Why), 1)
	if !c.asked {
		f.book.tally[orderDeferred]++
	}
	placed, refused := had > 0, c.ordered.NoRoom != "" && had == 0 && !f.core.Blocked()
	if !placed && !refused {
		return
	}
	log := s.deps.Log.With("function", c.fn.Key().String(), "wanted", c.Wanted(), "waiting", c.Snapshot.Waiting(),
		"created", c.Snapshot.Created, "creating", c.Snapshot.Creating)
	if placed {
		log.Info("ordered instances", "reason", string(d.Why), "ordered", had)
		return
	}
	log.Warn("no node has room for an instance", "reason", c.ordered.NoRoom)
	f.book.happenings.add(happening{reason: v1alpha1.ReasonNoCapacity, message: "no node has room for an instance: " + c.ordered.NoRoom, warning: true}, s.deps.Now())
}
