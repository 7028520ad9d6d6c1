package cluster

import (
	"math/rand/v2"
	"time"
)

// Clients are a closed loop: each client calls, waits for the answer, and calls again.
type Clients struct {
	// Count is how many, at least 1.
	Count int
	// First is the function that they call, or the first of Functions functions, of which each
	// call picks one at random; 0 counts as 1.
	First     int
	Functions int
	// Think is how long a client waits between an answer and its next call, a
	// microsecond at least, so that time goes on where calls take none.
	Think Distribution
	// From is when the first of them calls, and Within the time over which their
	// first calls are spread evenly.
	From   time.Duration
	Within time.Duration
	// Calls is how many calls they make all together, and Until when they make no
	// more; 0 for no end.
	Calls int
	Until time.Duration
}

// clientGroup are Clients at work.
type clientGroup struct {
	Clients
	rng  *rand.Rand
	left int // calls that may still be made; negative for no end
}

func (w *world) beginClients(c Clients, rng *rand.Rand) {
	k := &clientGroup{Clients: c, rng: rng, left: -1}
	w.groups = append(w.groups, k)
	if c.Calls > 0 {
		k.left = c.Calls
	}
	for i := range c.Count {
		w.agenda.plan(c.From+c.Within*time.Duration(i)/time.Duration(c.Count), (*clientCalls)(k))
	}
}

// done tells whether they make no more calls.
func (k *clientGroup) done(now time.Duration) bool {
	return k.left == 0 || k.Until > 0 && now >= k.Until
}

// clientCalls is when one of them calls.
type clientCalls clientGroup

func (e *clientCalls) run(w *world) {
	k := (*clientGroup)(e)
	if k.done(w.now) {
		return
	}
	if k.left > 0 {
		k.left--
	}
	function := k.First
	if k.Functions > 1 {
		function += k.rng.IntN(k.Functions)
	}
	w.arrive(Call{At: w.now, Function: function, Work: OwnWork}, k)
}

// answered handles the end of a call, successful or not.
func (k *clientGroup) answered(w *world) {
	w.agenda.plan(w.now+max(time.Microsecond, k.Think.Draw(k.rng)), (*clientCalls)(k))
}
