package scheduler

import (
	"cmp"
	"slices"
	"time"

	"golang.org/x/time/rate"

	"github.com/windlass-dev/windlass/api/v1alpha1"
	"github.com/windlass-dev/windlass/pkg/fpcs"
	"github.com/windlass-dev/windlass/pkg/invoke"
	"github.com/windlass-dev/windlass/pkg/provisioner"
	"github.com/windlass-dev/windlass/pkg/provisioner/share"
	"github.com/windlass-dev/windlass/pkg/scheduler/upkeep"
)

// maxOrders bounds the instances that are ordered in one tick where no rate does:
// the next one decides with what became of them.
const maxOrders = 1024

// orders divides what may be created between namespaces. Only Run's goroutine uses
// it.
type orders struct {
	shares share.Shares
	// rate is nil if there is none.
	rate *rate.Limiter
}

func newOrders(config Config) *orders {
	if config.CreateRate == 0 {
		return &orders{}
	}
	return &orders{rate: rate.NewLimiter(rate.Limit(config.CreateRate), config.CreateBurst)}
}

// left is how many instances may be ordered now.
func (o *orders) left(now time.Time) int {
	if o.rate == nil {
		return maxOrders
	}
	return max(0, min(maxOrders, int(o.rate.TokensAt(now))))
}

// urgent is how many may be ordered without waiting for a tick, and so for others.
// Half of a burst is kept back: calls of many functions of one namespace must not
// leave nothing to divide.
func (o *orders) urgent(now time.Time) int {
	if o.rate == nil {
		return maxOrders
	}
	return max(0, o.left(now)-o.rate.Burst()/2)
}

func (o *orders) spend(now time.Time, n int) {
	if o.rate != nil {
		o.rate.AllowN(now, n)
	}
}

// considered is a function that a tick has decided on.
type considered struct {
	function *function
	fn       *v1alpha1.Function
	term     invoke.Term
	counts   provisioner.Counts
	snapshot fpcs.Snapshot
	upkeep   upkeep.Upkeep
	bounds   fpcs.Limits
	decision fpcs.Decision

	// ordered is what became of its orders, and asked says that there were any.
	ordered provisioner.Ordered
	asked   bool
	// withdrawn are those of the instances being created that were ended.
	withdrawn []provisioner.Key
}

// wanted is how many instances are to be ordered: what was decided; or one, where no
// room is known for any. The order finds out why not, and whether room is to be made.
func (c *considered) wanted() int {
	d, total := c.decision, c.counts.Created+c.counts.Creating
	short := d.Create == 0 && d.Why == fpcs.ReasonNoRoom && c.snapshot.Waiting() > 0
	if short && (c.bounds.Max == 0 || total < c.bounds.Max) {
		return 1
	}
	return d.Create
}

// missing is how many of those could not be ordered.
func (c *considered) missing() int { return c.wanted() - len(c.ordered.Keys) }

// starved tells whether the function has no instance that works or comes.
func (c *considered) starved() bool {
	return c.counts.Created+c.counts.Creating+len(c.ordered.Keys) == 0
}

// waited is for how long calls have waited for the function's first instance, at least
// 1 ns; 0 if none do.
func (c *considered) waited() time.Duration {
	if !c.starved() || c.snapshot.Waiting() == 0 {
		return 0
	}
	return max(1, c.snapshot.OldestWait)
}

// inTurns puts functions into the order in which room is made for them: in each
// namespace those whose first instance is waited for the longest are first, and the
// first of all namespaces come before the second of any.
func inTurns(all []*considered) {
	slices.SortStableFunc(all, func(a, b *considered) int { return cmp.Compare(b.waited(), a.waited()) })
	turns, turn := make(map[string]int), make(map[*considered]int, len(all))
	for _, c := range all {
		turn[c] = turns[c.fn.Namespace]
		turns[c.fn.Namespace]++
	}
	slices.SortStableFunc(all, func(a, b *considered) int { return cmp.Compare(turn[a], turn[b]) })
}

// divide orders what all functions want, as far as it may be created now, and in
// turns of their namespaces.
func (s *Scheduler) divide(all []*considered) {
	var wants []share.Want
	var wanting []*considered
	for _, c := range all {
		if n := c.wanted(); n > 0 {
			wants = append(wants, share.Want{
				Namespace: c.fn.Namespace, Function: c.fn.Name, N: n,
				Cost: s.deps.Instances.Requests(c.fn).MilliCPU, Waited: c.waited(),
			})
			wanting = append(wanting, c)
		}
	}
	if len(wants) == 0 {
		return
	}
	round := s.orders.shares.Begin(wants, s.orders.left(s.deps.Now()))
	for i, n, ok := round.Next(); ok; i, n, ok = round.Next() {
		round.Took(s.order(wanting[i], n), n)
	}
}

// order orders up to n instances and returns how many could be had.
func (s *Scheduler) order(c *considered, n int) int {
	if n <= 0 {
		return 0
	}
	c.asked, c.ordered.NoRoom = true, ""
	had := s.takeSpares(c, n)
	if len(had) < n {
		ordered := s.orderAt(c.function, c.function.place(), c.fn, c.term, n-len(had))
		c.ordered.NoRoom = ordered.NoRoom
		had = append(had, ordered.Keys...)
	}
	c.ordered.Keys = append(c.ordered.Keys, had...)
	now := s.deps.Now()
	c.function.ordered(had, c.wantedSince(now))
	s.orders.spend(now, len(had))
	return len(had)
}

// report keeps what became of a decision to create instances. An order that stays
// without effect is logged once.
func (s *Scheduler) report(c *considered) {
	f, d, had := c.function, c.decision, len(c.ordered.Keys)
	f.count(had, c.snapshot)
	f.countDecision(d.Why)
	if !c.asked {
		f.note(orderDeferred, 1)
	}
	placed, refused := had > 0, c.ordered.NoRoom != "" && had == 0 && !f.blocked.Load()
	if !placed && !refused {
		return
	}
	log := s.deps.Log.With("function", c.fn.Key().String(), "wanted", c.wanted(), "waiting", c.snapshot.Waiting(),
		"created", c.snapshot.Created, "creating", c.snapshot.Creating)
	if placed {
		log.Info("ordered instances", "reason", string(d.Why), "ordered", had)
		return
	}
	log.Warn("no node has room for an instance", "reason", c.ordered.NoRoom)
	f.happenings.add(happening{reason: v1alpha1.ReasonNoCapacity, message: "no node has room for an instance: " + c.ordered.NoRoom, warning: true}, s.deps.Now())
}
