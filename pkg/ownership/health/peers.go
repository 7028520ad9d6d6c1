package health

import (
	"context"
	"errors"
	"log/slog"
	"maps"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"google.golang.org/grpc/credentials"

	controlwire "github.com/windlass-dev/windlass/api/wire/control/v1alpha1"
	"github.com/windlass-dev/windlass/pkg/ownership"
)

// Directory is a view of slots and members.
type Directory interface {
	// Map is the present view. Callers must not change it.
	Map() *ownership.Map
	// Changed is signalled after the Map has changed, once for many changes.
	Changed() <-chan struct{}
	// Update records an owner that another program named, and reports whether that changes the
	// Map.
	Update(slot ownership.Slot, owner ownership.Owner) bool
}

// Config has the settings of Peers.
type Config struct {
	// Self is the ID of the watching scheduler, which is never silent to itself; empty for a
	// gateway.
	Self string
}

// Deps are the parts that Peers uses.
type Deps struct {
	Directory Directory
	// Credentials authenticates schedulers. Without it, connections are not encrypted.
	Credentials credentials.TransportCredentials
	Registry    prometheus.Registerer
	Log         *slog.Logger
}

// CapacityExchange is how schedulers request room from each other in their heartbeats.
type CapacityExchange interface {
	// CapacityRequests returns the requests for room that the next heartbeat carries.
	CapacityRequests(to string) []*controlwire.CapacityRequest
	// CapacityFreed receives the answer to each heartbeat, with the room that was made.
	CapacityFreed(by string, made []*controlwire.CapacityFreed)
}

// Peers watches all other schedulers. Its methods are safe for concurrent use.
type Peers struct {
	config  Config
	deps    Deps
	routes  *routes
	changed chan struct{}
	// exchange is nil for a gateway.
	exchange CapacityExchange
	// observed holds an element if a failure detector has changed.
	observed chan struct{}

	mu      sync.Mutex
	watched map[string]*peer // by ID
}

type route struct {
	to            ownership.Owner
	acting, known bool
}

// routes are the routes of all slots, replaced as a whole, because every ticket reads one.
type routes struct {
	now atomic.Pointer[[ownership.Slots]route]
}

func newRoutes() *routes {
	r := &routes{}
	r.now.Store(new([ownership.Slots]route))
	return r
}

func (r *routes) of(slot ownership.Slot) route { return r.now.Load()[slot%ownership.Slots] }

// replace reports whether any route has changed.
func (r *routes) replace(next *[ownership.Slots]route) (changed bool) {
	return *r.now.Swap(next) != *next
}

// New makes Peers. It starts nothing.
func New(config Config, deps Deps) (*Peers, error) {
	if deps.Directory == nil || deps.Registry == nil || deps.Log == nil {
		return nil, errors.New("peers: Directory, Registry or Log is nil: pass all of them")
	}
	p := &Peers{
		config: config, deps: deps,
		changed: make(chan struct{}, 1), observed: make(chan struct{}, 1),
		routes: newRoutes(), watched: make(map[string]*peer),
	}
	deps.Registry.MustRegister(silentNow.Func(func() float64 { return float64(len(p.silent())) }))
	return p, nil
}

// Route returns the scheduler that a slot's tickets and pulls go to now. acting says that it
// is the standby; to then has the epoch of the owner. known is false while no scheduler is
// known.
func (p *Peers) Route(slot ownership.Slot) (to ownership.Owner, acting, known bool) {
	r := p.routes.of(slot)
	return r.to, r.acting, r.known
}

// Map is the present view of slots and members. Callers must not change it.
func (p *Peers) Map() *ownership.Map { return p.deps.Directory.Map() }

// Changed is signalled after a route has changed, once for many changes. All callers share one
// channel.
func (p *Peers) Changed() <-chan struct{} { return p.changed }

// SetExchange sets what a scheduler's heartbeats carry. Call it before Run.
func (p *Peers) SetExchange(exchange CapacityExchange) { p.exchange = exchange }

// Run watches until ctx ends.
func (p *Peers) Run(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	var running sync.WaitGroup
	defer running.Wait()
	defer cancel()
	// Twice per heartbeat, so that silence is noticed soon.
	look := time.NewTicker(ownership.HeartbeatInterval / 2)
	defer look.Stop()
	p.watchMembers(ctx, &running)
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-p.deps.Directory.Changed():
			p.watchMembers(ctx, &running)
		case <-p.observed:
		case now := <-look.C:
			p.advance(now)
		}
		p.reroute()
	}
}

// watchMembers watches exactly the schedulers of the map.
func (p *Peers) watchMembers(ctx context.Context, running *sync.WaitGroup) {
	wanted := p.schedulers()
	p.mu.Lock()
	defer p.mu.Unlock()
	for id, old := range p.watched {
		if wanted[id] != old.addr {
			old.stop()
			delete(p.watched, id)
		}
	}
	for id, addr := range wanted {
		if p.watched[id] == nil {
			watching, stop := context.WithCancel(ctx)
			one := newPeer(id, addr, stop, p)
			p.watched[id] = one
			running.Go(func() { one.run(watching) })
		}
	}
}

// schedulers are the addresses of all members and owners, by ID. One that lost its membership
// may still serve; only its heartbeats show that.
func (p *Peers) schedulers() map[string]string {
	known := p.deps.Directory.Map()
	wanted := make(map[string]string)
	for slot := range ownership.Slot(ownership.Slots) {
		if owner, ok := known.Owner(slot); ok {
			wanted[owner.ID] = owner.Addr
		}
	}
	for _, m := range known.Members() {
		wanted[m.ID] = m.Addr
	}
	delete(wanted, p.config.Self)
	return wanted
}

func (p *Peers) advance(now time.Time) {
	p.mu.Lock()
	watched := maps.Clone(p.watched)
	p.mu.Unlock()
	for _, one := range watched {
		one.updateDetector(func(detector ownership.FailureDetector) ownership.FailureDetector { return detector.Advance(now) }, errUnanswered)
	}
}

// silent are the IDs of the silent schedulers.
func (p *Peers) silent() map[string]bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	silent := make(map[string]bool)
	for id, one := range p.watched {
		if one.isSilent() {
			silent[id] = true
		}
	}
	return silent
}

// reroute recomputes the routes.
func (p *Peers) reroute() {
	silent := p.silent()
	known := p.deps.Directory.Map()
	next := new([ownership.Slots]route)
	for slot := range next {
		r := &next[slot]
		r.to, r.acting, r.known = known.Route(ownership.Slot(slot), func(id string) bool { return silent[id] })
	}
	if p.routes.replace(next) {
		select {
		case p.changed <- struct{}{}:
		default:
		}
	}
}

// signalChange makes Run recompute the routes.
func (p *Peers) signalChange() {
	select {
	case p.observed <- struct{}{}:
	default:
	}
}
