package fairshare

import (
	"cmp"
	"slices"
	"time"
)

// Want is what one function asks for.
type Want struct {
	Namespace, Function string
	// N is the number of instances.
	N int
	// Waited is for how long calls have waited for the function's first instance; 0 if none
	// do. In each namespace the longest wait is served first, and no function gets a second
	// instance before all have their first.
	Waited time.Duration
	// Last says that it is served after all others of its namespace, because no call waits for
	// it.
	Last bool
	// Cost is the cost of one instance, at least 1, in a unit that is the same for all.
	Cost int64
}

// Shares remembers between rounds whose turn it is. Its zero value is ready to use. It is not
// safe for concurrent use.
type Shares struct {
	// turns are the namespaces with wants in this round, the next one first.
	turns []*namespaceTurn
	// short are those that left the round because room lacked, and come first in the next one,
	// where their turn continues; served are those that got all, and come last.
	short, served []*namespaceTurn
}

// namespaceTurn is the account of a namespace while it has wants.
type namespaceTurn struct {
	namespace string
	// deficit is what it may spend in its turn.
	deficit int64
	// started says that its turn has begun, maybe in an earlier round.
	started bool
	// functions are its wants in the order of service.
	functions []*request
	last      string // function that was served last
	// short says that one of its functions could not be launched in this round.
	short bool
}

// request is the rest of a Want.
type request struct {
	Want
	index int
}

func (c *request) rank() int {
	if c.Last {
		return 1
	}
	return 0
}

// Round is one division of a budget.
type Round struct {
	shares *Shares
	budget int
	// quantum is the value of a turn: the most expensive instance.
	quantum int64
}

// Begin begins a round that grants at most budget instances. It ends the previous round.
func (s *Shares) Begin(wants []Want, budget int) *Round {
	s.setWants(wants)
	r := &Round{shares: s, budget: budget, quantum: 1}
	for _, w := range wants {
		r.quantum = max(r.quantum, w.Cost)
	}
	return r
}

// setWants opens accounts for namespaces with wants and closes the others: a namespace without
// wants saves nothing.
func (s *Shares) setWants(wants []Want) {
	s.turns = slices.Concat(s.short, s.turns, s.served)
	s.short, s.served = nil, nil
	turns := make(map[string]*namespaceTurn, len(s.turns))
	for _, a := range s.turns {
		a.functions, a.short = nil, false
		turns[a.namespace] = a
	}
	for i, w := range wants {
		if w.N <= 0 {
			continue
		}
		a := turns[w.Namespace]
		if a == nil {
			a = &namespaceTurn{namespace: w.Namespace}
			turns[w.Namespace] = a
			s.turns = append(s.turns, a)
		}
		w.Cost = max(1, w.Cost)
		a.functions = append(a.functions, &request{Want: w, index: i})
	}
	s.turns = slices.DeleteFunc(s.turns, func(a *namespaceTurn) bool { return len(a.functions) == 0 })
	for _, a := range s.turns {
		a.sort()
	}
}

// sort puts the longest wait for a first instance first, then continues after the function
// that was served last. Those that are Last come at the end.
func (a *namespaceTurn) sort() {
	lap := func(c *request) int {
		if c.Function > a.last {
			return 0
		}
		return 1
	}
	slices.SortFunc(a.functions, func(x, y *request) int {
		return cmp.Or(cmp.Compare(y.Waited, x.Waited), cmp.Compare(x.rank(), y.rank()), cmp.Compare(lap(x), lap(y)), cmp.Compare(x.Function, y.Function))
	})
}

// requeue puts a served request behind the others, but before those that are Last.
func (a *namespaceTurn) requeue(c *request) {
	at := len(a.functions)
	if !c.Last {
		if last := slices.IndexFunc(a.functions, func(f *request) bool { return f.Last }); last >= 0 {
			at = last
		}
	}
	a.functions = slices.Insert(a.functions, at, c)
}

// Next grants an instance to the want of that index. The caller must call Launched before it
// calls Next again. ok is false when the round is over.
func (r *Round) Next() (index int, ok bool) {
	for r.budget > 0 && len(r.shares.turns) > 0 {
		a := r.shares.turns[0]
		if !a.started {
			a.started = true
			a.deficit += r.quantum
		}
		if c := a.functions[0]; c.Cost <= a.deficit {
			return c.index, true
		}
		r.shares.endTurn()
	}
	return 0, false
}

// Launched says whether the last grant could be launched. If not, the function gets no more in
// this round.
func (r *Round) Launched(ok bool) {
	a := r.shares.turns[0]
	c := a.functions[0]
	a.functions = a.functions[1:]
	if ok {
		r.budget--
		a.deficit -= c.Cost
		a.last = c.Function
		c.N--
		if c.N > 0 {
			a.requeue(c)
		}
	} else {
		a.short = true
	}
	if len(a.functions) == 0 {
		r.shares.leaveRound()
	}
}

// endTurn ends a turn.
func (s *Shares) endTurn() {
	a := s.turns[0]
	a.started = false
	s.turns = append(s.turns[1:], a)
}

// leaveRound removes the namespace whose turn it is from the round. If it got all, it saves
// nothing.
func (s *Shares) leaveRound() {
	a := s.turns[0]
	s.turns = s.turns[1:]
	if a.short {
		s.short = append(s.short, a)
		return
	}
	a.started, a.deficit = false, 0
	s.served = append(s.served, a)
}
