package provisioner

import (
	"context"
	"crypto/rand"
	"fmt"
	"log/slog"
	mathrand "math/rand/v2"
	"strings"
	"sync"
	"time"

	"github.com/windlass-dev/windlass/api/v1alpha1"
	"github.com/windlass-dev/windlass/pkg/provisioner/nodepick"
)

// silencePatience is how long a created instance may be without a stream before
// it is stopped: long enough for an agent to reconnect.
const silencePatience = 10 * time.Second

// startGrace is how much longer than its own startup timeout an instance gets:
// its agent measures from its own start, and reports a better reason.
const startGrace = 5 * time.Second

// Config is what a Provisioner needs to know.
type Config struct {
	// Nodes are the nodes that there are, with what they can hold.
	Nodes []nodepick.Node
}

// Deps are what a Provisioner works with.
type Deps struct {
	Runtime Runtime
	Now     func() time.Time
	Log     *slog.Logger
}

// Events is told what became of instances. Its methods are called without a
// lock held, one at a time.
type Events interface {
	// StartFailed says that an instance ended before its first pull.
	StartFailed(key Key, why StartFailure)
	// Gone says that an instance ended after its first pull. Lost means
	// that nobody expected it.
	Gone(key Key, lost bool, why string)
}

// Provisioner orders instances and follows them to their end.
type Provisioner struct {
	deps  Deps
	nodes []nodepick.Node

	mu        sync.Mutex
	inventory *Inventory
	guards    map[string]*StartGuard
}

// New makes a Provisioner. It starts nothing.
func New(config Config, deps Deps) *Provisioner {
	return &Provisioner{
		deps:      deps,
		nodes:     append([]nodepick.Node(nil), config.Nodes...),
		inventory: NewInventory(),
		guards:    make(map[string]*StartGuard),
	}
}

// Ordered is what became of an order.
type Ordered struct {
	// Keys are the instances that were ordered.
	Keys []Key
	// NoRoom explains, if fewer were ordered than allowed for, why no node
	// has room.
	NoRoom string
}

// Order orders up to n instances of a function and returns at once.
func (p *Provisioner) Order(fn *v1alpha1.Function, epoch uint64, n int) Ordered {
	specs, ordered := p.plan(fn, epoch, n)
	for _, spec := range specs {
		p.deps.Runtime.Start(spec)
	}
	return ordered
}

// plan enters the order in the inventory before anything is started, so that
// no exit can come before its order.
func (p *Provisioner) plan(fn *v1alpha1.Function, epoch uint64, n int) (specs []InstanceSpec, ordered Ordered) {
	p.mu.Lock()
	defer p.mu.Unlock()
	uid, now := string(fn.UID), p.deps.Now()
	n = p.guard(uid).Allowed(now, n, p.inventory.Count(uid).Creating)
	want := requests(fn)
	for range n {
		node, rejected := p.pick(want)
		if node == "" {
			ordered.NoRoom = explain(rejected)
			break
		}
		token := rand.Text()
		key := p.inventory.Order(uid, epoch, Instance{
			Generation: fn.Generation,
			Token:      token,
			Node:       node,
			Requests:   want,
			Ordered:    now,
			StartBy:    now.Add(fn.Spec.StartupTimeout.Duration + startGrace),
		})
		ordered.Keys = append(ordered.Keys, key)
		specs = append(specs, InstanceSpec{Function: fn, CID: key.CID, Token: token, Node: node})
	}
	return specs, ordered
}

func (p *Provisioner) pick(want nodepick.Amount) (string, []nodepick.Rejection) {
	for i := range p.nodes {
		p.nodes[i].Requested = p.inventory.Requested(p.nodes[i].Name)
	}
	i, rejected := nodepick.Pick(p.nodes, want, mathrand.IntN)
	if i < 0 {
		return "", rejected
	}
	return p.nodes[i].Name, rejected
}

func requests(fn *v1alpha1.Function) nodepick.Amount {
	var a nodepick.Amount
	if cpu := fn.Spec.Resources.Requests.CPU; cpu != nil {
		a.MilliCPU = cpu.MilliValue()
	}
	if memory := fn.Spec.Resources.Requests.Memory; memory != nil {
		a.Memory = memory.Value()
	}
	return a
}

func explain(rejected []nodepick.Rejection) string {
	reasons := make([]string, len(rejected))
	for i, r := range rejected {
		reasons[i] = fmt.Sprintf("node %s: %s", r.Node, r.Reason)
	}
	if len(reasons) == 0 {
		return "there is no node"
	}
	return strings.Join(reasons, "; ")
}

// Connect checks an agent's proof and notes that its stream is there. The error
// is ErrUnknownInstance, ErrBadToken or nil.
func (p *Provisioner) Connect(key Key, token string) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.inventory.Connect(key, token)
}

// Disconnect notes that an agent's stream ended.
func (p *Provisioner) Disconnect(key Key) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.inventory.Disconnect(key, p.deps.Now())
}

// Pulled notes that an instance asked for work and tells whether it did so for
// the first time.
func (p *Provisioner) Pulled(key Key) (first bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	first = p.inventory.Pulled(key)
	if first {
		p.guard(key.FunctionUID).Started()
	}
	return first
}

// Leaving notes that an instance will end by itself, as it should.
func (p *Provisioner) Leaving(key Key) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.inventory.Leave(key)
}

// StartFailed notes that an agent gave up waiting for its function. The runtime
// is told to end the instance; its exit brings the last log lines.
func (p *Provisioner) StartFailed(key Key, reason string) {
	p.mu.Lock()
	p.inventory.Blame(key, reason)
	p.mu.Unlock()
	p.deps.Runtime.Stop(key.FunctionUID, key.CID)
}

// Stop ends an instance that is not wanted any more.
func (p *Provisioner) Stop(key Key) {
	p.Leaving(key)
	p.deps.Runtime.Stop(key.FunctionUID, key.CID)
}

// Forget drops what is known of a function's failures.
func (p *Provisioner) Forget(uid string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.guards, uid)
}

// Count counts a function's instances.
func (p *Provisioner) Count(uid string) Counts {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.inventory.Count(uid)
}

// Instances returns a function's instances, in no order.
func (p *Provisioner) Instances(uid string) []Instance {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.inventory.Instances(uid)
}

// Failing tells why a function's instances do not start and how long until the
// next try, unless all is well.
func (p *Provisioner) Failing(uid string) (why StartFailure, retryAfter time.Duration, failing bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	why, at, failing := p.guard(uid).Failing()
	return why, max(0, at.Sub(p.deps.Now())), failing
}

// guard returns a function's guard. The caller holds the lock.
func (p *Provisioner) guard(uid string) *StartGuard {
	g, known := p.guards[uid]
	if !known {
		g = &StartGuard{}
		p.guards[uid] = g
	}
	return g
}

// Run follows instances to their end, and tells events of it, until ctx ends.
func (p *Provisioner) Run(ctx context.Context, events Events) error {
	overdue := time.NewTicker(time.Second)
	defer overdue.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case exit := <-p.deps.Runtime.Exits():
			p.exited(exit, events)
		case <-overdue.C:
			p.stopOverdue()
		}
	}
}

// exited settles the account of an instance that has ended.
func (p *Provisioner) exited(exit Exit, events Events) {
	key := Key{FunctionUID: exit.FunctionUID, CID: exit.CID}
	p.mu.Lock()
	in, err := p.inventory.Remove(key)
	failure := StartFailure{Reason: exit.Reason, LogTail: exit.LogTail}
	if in.Blamed != "" {
		failure.Reason = in.Blamed
	}
	if err == nil && in.State == Creating {
		p.guard(key.FunctionUID).Failed(p.deps.Now(), failure)
	}
	p.mu.Unlock()

	switch {
	case err != nil:
		p.deps.Log.Warn("an instance ended that was not ordered", "cid", exit.CID, "reason", exit.Reason)
	case in.State == Creating:
		events.StartFailed(key, failure)
	default:
		events.Gone(key, in.State == Created, failure.Reason)
	}
}

// stopOverdue ends instances that should have been heard of. Their exits tell
// the rest.
func (p *Provisioner) stopOverdue() {
	p.mu.Lock()
	overdue := p.inventory.Overdue(p.deps.Now(), silencePatience)
	for _, in := range overdue {
		p.inventory.Blame(in.Key, "its agent was not heard of in time")
	}
	p.mu.Unlock()
	for _, in := range overdue {
		p.deps.Log.Warn("stopping a silent instance", "cid", in.CID, "state", in.State.String())
		p.deps.Runtime.Stop(in.FunctionUID, in.CID)
	}
}
