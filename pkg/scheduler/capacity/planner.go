package capacity

import (
	"time"

	"github.com/windlass-dev/windlass/pkg/invocation"
	"github.com/windlass-dev/windlass/pkg/provisioner/placement"
)

// Config is what a Planner needs to know.
type Config struct {
	// Tick is the time between two ticks.
	Tick time.Duration
	// EvictAfter is how long an instance must have been idle before it may be evicted. For
	// a function that has none, one may be evicted earlier that became idle after the
	// call had come.
	EvictAfter time.Duration
	// Patience is how long nothing may move on the nodes until waiting for room is given up.
	Patience time.Duration
	// Spares says that there may be spare instances, which are evicted first.
	Spares bool
}

// What Config has by default.
const (
	DefaultEvictAfter = 2 * time.Second
	DefaultPatience   = 5 * time.Second
)

// Planner decides which functions of one scheduler get room on the nodes.
type Planner struct {
	config Config
	nodeUsage

	// What one tick knows. It is forgotten when the next one begins.
	//
	// lastMoves is when something last moved where there could be room; see quietFor.
	lastMoves  map[Shape]time.Time
	candidates candidates

	// What is kept from tick to tick.
	moves nodeMoves
	index *usageIndex
	// changed are the idle instances whose functions' usage was handed in since the last
	// Gather.
	changed []*Idle
}

// nodeUsage has the nodes of a tick, and the reservations on them.
type nodeUsage struct {
	// What one tick knows: sites are by the Where of the functions, and changes what was
	// launched and reserved since the tick began. A site applies those that it has not seen
	// when it is next asked for.
	sites   map[string]*site
	changes []usageChange

	// What is kept from tick to tick.
	//
	// holders are the functions that have reservations, by UID, and lent what is
	// reserved for peers.
	holders map[string]*holder
	lent    map[Loan]*holder
	// leaving are the evicted instances that have not ended, and freed their requests on each
	// node.
	leaving map[Key]leaver
	freed   map[string]placement.Amount
	lapses  lapses
}

// New makes a Planner that knows nothing.
func New(config Config) *Planner {
	return &Planner{
		config: config, nodeUsage: newNodeUsage(), lastMoves: make(map[Shape]time.Time), index: newUsageIndex(),
	}
}

func newNodeUsage() nodeUsage {
	return nodeUsage{
		sites: make(map[string]*site), holders: make(map[string]*holder), lent: make(map[Loan]*holder),
		leaving: make(map[Key]leaver), freed: make(map[string]placement.Amount),
		lapses: make(lapses),
	}
}

// Key names an instance.
type Key struct {
	// FunctionUID is that of the pool for a spare instance.
	FunctionUID string
	CID         invocation.CID
}

// Shape is what the room for an instance depends on.
type Shape struct {
	Requests placement.Amount
	// Where names the nodes on which it may run: instances with the same Where may run on the
	// same nodes.
	Where string
}

// Want is a function that is short of instances after the launches of a tick.
type Want struct {
	UID, Namespace string
	Shape
	// Missing is how many instances are needed and could not be launched.
	Missing int
	// Starved says that the function has no instance that works or starts.
	Starved bool
	// Waiting is the number of waiting calls, and OldestWait how long the oldest one has
	// waited.
	Waiting    int
	OldestWait time.Duration
}

// Waited is for how long calls have waited for a function's first instance, at least 1 ns;
// 0 if none do. The function is starved if it has no instance that works or starts.
func Waited(starved bool, waiting int, oldest time.Duration) time.Duration {
	if !starved || waiting == 0 {
		return 0
	}
	return max(1, oldest)
}

// BeginTick drops the last tick's view of the nodes, and expired reservations. Call Left and
// Trim before it.
func (p *Planner) BeginTick(now time.Time) {
	p.forgetSites()
	clear(p.lastMoves)
	p.candidates = candidates{}
	p.expireReservations(now)
}
