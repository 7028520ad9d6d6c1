package sim

import (
	"math/rand/v2"
	"time"

	"github.com/windlass-dev/windlass/pkg/autoscaler"
	"github.com/windlass-dev/windlass/pkg/invocation"
)

// World is everything that a simulation consists of. Whatever happens in it
// follows from its Config.
type World struct {
	config Config
	rng    *rand.Rand
	now    time.Duration
	seq    uint64
	agenda agenda
	steps  int
	events int

	net        *network
	functions  []*function
	gateways   []*node
	schedulers []*node
	workers    []*worker
	etcd       *etcd
	platform   *platform
	// pools are what the spare instances of each scheduler are of.
	pools     map[string]*unit
	truth     *truth
	trace     trace
	counts    Counts
	violation *Violation
	// struck counts the faults that there were.
	struck int
	// poisoned is the function whose calls end their instances; nil if there is none.
	poisoned *function
	// full says that others take all room on the workers, and filled since when. Looping
	// says that no instance of the poisoned function starts again so soon.
	full, looping bool
	filled        time.Duration
	chaos         *chaos
	// failing is the function whose next starts fail, as many as failures says; nil if there is none.
	failing  *function
	failures int
	// uncontrolled says that the controller is away, and clockWrong is by how much its clock is ahead.
	uncontrolled bool
	clockWrong   time.Duration
	// secrets counts the secrets of connections.
	secrets int
	// disturbances counts the faults that struck or ended and the servers that started or died,
	// disturbed is when the last one was, and lasting is how many faults last.
	disturbances, lasting int
	disturbed             time.Duration
	// calm says that there will be no more faults.
	calm bool
}

// start is what all clocks show at first, give or take some hours.
var start = time.Unix(1_700_000_000, 0)

// Run simulates. The error is that of an invalid Config.
func Run(config Config, sink TraceSink) (Result, error) {
	if err := config.Validate(); err != nil {
		return Result{}, err
	}
	w := newWorld(config, sink)
	w.populate()
	w.until(config.Duration)
	w.chaos.endFaults()
	settling{w}.settle()
	return w.result(), nil
}

func newWorld(config Config, sink TraceSink) *World {
	w := &World{
		config: config,
		rng:    rand.New(rand.NewPCG(config.Seed, 0x5eed)),
		agenda: make(agenda, 0, 1024),
		trace:  trace{hash: 0xcbf29ce484222325, sink: sink},
	}
	w.net = newNetwork(w, 1+config.Gateways+config.Schedulers+config.Workers)
	w.truth = newTruth(w)
	w.etcd = newEtcd(w)
	w.etcd.silent = config.asideStream("etcd-rolled-back") != nil
	w.platform = &platform{world: w}
	w.chaos = &chaos{World: w}
	return w
}

// populate makes the machines and plans what will happen to them.
func (w *World) populate() {
	for i := range w.config.Functions {
		w.functions = append(w.functions, w.newFunction(i))
	}
	machine := 1 // 0 is etcd's
	for i := range w.config.Schedulers {
		w.schedulers = append(w.schedulers, w.newNode("s", i, machine))
		machine++
	}
	for i := range w.config.Gateways {
		w.gateways = append(w.gateways, w.newNode("g", i, machine))
		machine++
	}
	for i := range w.config.Workers {
		w.workers = append(w.workers, &worker{name: "w" + decimal(i+1), machine: machine, cores: cores(w.config.Cores)})
		machine++
	}
	w.pools = make(map[string]*unit, len(w.schedulers))
	for _, n := range w.schedulers {
		w.pools[n.name] = w.newPoolUnit(n.name)
	}
	for _, n := range w.schedulers {
		n.start(newScheduler(n))
	}
	for _, n := range w.gateways {
		n.start(newGateway(n))
	}
	w.etcd.boot()
	w.at(collectEvery, w.platform.collect)
	w.planCalls()
	w.chaos.planFaults()
}

// deciders are those that functions have in turn, so that faults meet all of them.
var deciders = autoscaler.All()

// namespaces are those that functions have in turn.
var namespaces = [...]string{"north", "south"}

func (w *World) newNode(kind string, i, machine int) *node {
	return &node{
		world: w, name: kind + decimal(i+1), machine: machine, clock: w.newClock(), news: make(map[int]time.Duration),
	}
}

// newClock is a clock that somebody has set, and that may be a bad one.
func (w *World) newClock() clock {
	rate := 1.0
	if w.chance(0.2) {
		rate = 0.5 + 1.5*w.rng.Float64()
	}
	return clock{rate: rate, shown: start.Add(w.between(-12*time.Hour, 12*time.Hour)), since: w.now}
}

// controllerNow is what the controller's clock shows.
func (w *World) controllerNow() time.Time { return start.Add(w.now + w.clockWrong) }

// at plans f for a time from now.
func (w *World) at(in time.Duration, f func()) {
	w.seq++
	w.agenda.push(event{at: w.now + in, seq: w.seq, run: f})
}

// frenzy is how many events a call may cause at most. Some hundred are usual,
// with everything that happens meanwhile.
const frenzy = 2000

// until lets everything happen up to a time, or up to a violation.
func (w *World) until(end time.Duration) {
	for len(w.agenda) > 0 && w.agenda[0].at <= end && w.violation == nil {
		e := w.agenda.pop()
		w.now = e.at
		e.run()
		if w.events++; w.events > frenzy*w.config.Invocations {
			w.violate(RuleNoFrenzy, 0)
		}
	}
	if w.violation == nil {
		w.now = end
	}
}

func (w *World) chance(p float64) bool { return w.rng.Float64() < p }

// between is a duration from least up to most.
func (w *World) between(least, most time.Duration) time.Duration {
	return least + time.Duration(w.rng.Int64N(int64(most-least)))
}

// token and id are as secret as the seed.
func (w *World) token() invocation.Token {
	var t invocation.Token
	w.fill(t[:])
	return t
}

func (w *World) id(now time.Time) invocation.ID {
	var id invocation.ID
	w.fill(id[:])
	ms := uint64(now.UnixMilli())
	for i := 5; i >= 0; i-- {
		id[i] = byte(ms)
		ms >>= 8
	}
	return id
}

func (w *World) fill(b []byte) {
	for len(b) > 0 {
		x := w.rng.Uint64()
		for i := 0; i < 8 && len(b) > 0; i++ {
			b[0], b = byte(x), b[1:]
			x >>= 8
		}
	}
}

// pick is one of a list, or the zero value of an empty one.
func pick[T any](w *World, list []T) T {
	if len(list) == 0 {
		var none T
		return none
	}
	return list[w.rng.IntN(len(list))]
}

// nodeOf is the scheduler of an address.
func (w *World) nodeOf(addr string) *node {
	for _, n := range w.schedulers {
		if n.name == addr {
			return n
		}
	}
	for _, n := range w.gateways {
		if n.name == addr {
			return n
		}
	}
	return nil
}
