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
	// turns are the namespaces with wants, the next one first.
	turns []*namespaceTurn
}

// namespaceTurn is the account of a namespace while it has wants.
type namespaceTurn struct {
	namespace string
	// deficit is what it may spend in its turn.
	deficit int64
	// started says that its turn began in an earlier round and continues.
	started bool
	// functions are its wants in the order of service.
	functions []*request
	last      string // function that was served last
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
	// quantum is the value of a turn: enough for a chunk of the most expensive instances.
	quantum int64
	chunk   int
	granted *request
}

// turnsInRound is how many turns of each function a budget is divided into, so that no
// function takes all the room in one turn, and few grants are needed.
const turnsInRound = 4

// Begin begins a round that grants at most budget instances. It ends the previous round.
func (s *Shares) Begin(wants []Want, budget int) *Round {
	s.setWants(wants)
	r := &Round{shares: s, budget: budget}
	total, claims, maxCost := 0, 0, int64(1)
	for _, a := range s.turns {
		claims += len(a.functions)
	}
	for _, w := range wants {
		total += w.N
		maxCost = max(maxCost, w.Cost)
	}
	r.chunk = max(1, min(budget, total))
	if claims > 1 {
		r.chunk = max(1, r.chunk/(turnsInRound*claims))
	}
	r.quantum = int64(r.chunk) * maxCost
	return r
}

// setWants opens accounts for namespaces with wants and closes the others: a namespace without
// wants saves nothing.
func (s *Shares) setWants(wants []Want) {
	turns := make(map[string]*namespaceTurn, len(s.turns))
	for _, a := range s.turns {
		a.functions = nil
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

// Next grants n instances to the want of that index. The caller must call Launched before it
// calls Next again. ok is false when the round is over.
func (r *Round) Next() (index, n int, ok bool) {
	for r.budget > 0 && len(r.shares.turns) > 0 {
		a := r.shares.turns[0]
		if !a.started {
			a.started = true
			a.deficit += r.quantum
		}
		c := a.functions[0]
		n := min(c.N, r.chunk, r.budget, int(a.deficit/c.Cost))
		if c.Waited > 0 {
			n = min(n, 1)
		}
		if n > 0 {
			r.granted = c
			return c.index, n, true
		}
		r.shares.endTurn()
	}
	return 0, 0, false
}

// Launched says how many instances of the last grant could be launched. If n is less than
// granted, the function gets no more in this round.
func (r *Round) Launched(n, granted int) {
	a, c := r.shares.turns[0], r.granted
	r.budget -= n
	a.deficit -= int64(n) * c.Cost
	a.last = c.Function
	c.N, c.Waited = c.N-n, 0
	a.functions = a.functions[1:]
	if c.N > 0 && n == granted {
		a.requeue(c)
	}
	if len(a.functions) == 0 {
		r.shares.turns = r.shares.turns[1:]
	}
}

// endTurn ends a turn.
func (s *Shares) endTurn() {
	a := s.turns[0]
	a.started = false
	s.turns = append(s.turns[1:], a)
}
