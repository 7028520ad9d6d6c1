package provisioner

import (
	"cmp"
	"context"
	"crypto/rand"
	"log/slog"
	mathrand "math/rand/v2"
	"sync"
	"time"

	"github.com/windlass-dev/windlass/api/v1alpha1"
	"github.com/windlass-dev/windlass/pkg/invoke"
	"github.com/windlass-dev/windlass/pkg/provisioner/nodepick"
	"github.com/windlass-dev/windlass/pkg/reconcile"
)

// silencePatience is how long a created instance may be without a stream before
// it is stopped: long enough for an agent to reconnect.
const silencePatience = 10 * time.Second

// startGrace is how much longer than its own startup timeout an instance gets:
// its agent measures from its own start, and reports a better reason.
const startGrace = 5 * time.Second

// Config is what a Provisioner needs to know.
type Config struct {
	// Nodes are the nodes that there are, with what they can hold, unless
	// Deps.Nodes tells.
	Nodes []nodepick.Node
	// AgentRequests is what an agent requests of its instance's node.
	AgentRequests nodepick.Amount
}

// Deps are what a Provisioner works with.
type Deps struct {
	Runtime Runtime
	// Shared is the same runtime, if its instances outlive this process, and
	// Nodes tells where they may run; both may be nil.
	Shared Shared
	Nodes  Nodes
	// Taker is the same runtime, if it keeps spare instances, and Identify says
	// which instance an agent's proof is of; both may be nil. The error is
	// ErrUnknownInstance, wraps ErrBadToken or is a passing one.
	Taker    Taker
	Identify func(proof string) (Key, error)
	// Book is the same runtime, if it tells which instances it looks after, and
	// Surveyor if they may come and go unseen; both may be nil.
	Book     Book
	Surveyor Surveyor
	// Witness is the same runtime, if it sees how starts come along; may be nil.
	Witness Witness
	// Verify checks an agent's proof that it is the instance's. If it is nil,
	// the proof is the token that the instance was started with. The error
	// wraps ErrBadToken or is a passing one.
	Verify func(key Key, proof string) error
	Now    func() time.Time
	Log    *slog.Logger
}

// Events is told what became of instances. Its methods are called without a
// lock held, one at a time.
type Events interface {
	// StartFailed says that an instance ended before its first pull.
	StartFailed(key Key, why StartFailure)
	// Gone says that an instance ended after its first pull. Lost means
	// that nobody expected it.
	Gone(key Key, lost bool, why StartFailure)
}

// Provisioner orders instances and follows them to their end.
type Provisioner struct {
	config Config
	deps   Deps

	mu        sync.Mutex
	inventory *Inventory
	guards    startGuards

	// entries and pods are what Reconcile and ReconcilePods found last, and vanished
	// is what Run has yet to settle.
	entries, pods reconcile.Level[Key]
	vanished      chan Key
}

// New makes a Provisioner. It starts nothing.
func New(config Config, deps Deps) *Provisioner {
	return &Provisioner{
		config:    config,
		deps:      deps,
		inventory: NewInventory(),
		vanished:  make(chan Key, vanishedBuffer),
	}
}

// Ordered is what became of an order.
type Ordered struct {
	// Keys are the instances that were ordered.
	Keys []Key
	// NoRoom explains, if fewer were ordered than allowed for, why no node
	// has room, in less than 1 KiB.
	NoRoom string
}

// Order orders up to n instances of a function, on nodes as they are now, and returns
// at once.
func (p *Provisioner) Order(fn *v1alpha1.Function, term invoke.Term, n int) Ordered {
	site, want := nodepick.NewSite(p.Candidates(fn)), p.Requests(fn)
	var ordered Ordered
	ordered.Keys = p.OrderOn(fn, term, n, func() (string, bool) {
		node, ok := site.Pick(want, mathrand.IntN)
		if !ok {
			ordered.NoRoom = site.Explain(want)
			return "", false
		}
		site.Request(node, want)
		return node, true
	})
	return ordered
}

// OrderOn orders up to n instances of a function, each on the node that place names,
// and returns at once: fewer if place names no more, or if the function's last
// instances did not start. Place must not call the Provisioner.
func (p *Provisioner) OrderOn(fn *v1alpha1.Function, term invoke.Term, n int, place func() (node string, ok bool)) []Key {
	specs, keys := p.plan(fn, term, n, place)
	for _, spec := range specs {
		p.deps.Runtime.Start(spec)
	}
	return keys
}

// plan enters the order in the inventory before anything is started, so that
// no exit can come before its order.
func (p *Provisioner) plan(fn *v1alpha1.Function, term invoke.Term, n int, place func() (node string, ok bool)) (specs []InstanceSpec, keys []Key) {
	p.mu.Lock()
	defer p.mu.Unlock()
	uid, now := string(fn.UID), p.deps.Now()
	n = p.guards.of(uid).Allowed(now, n, p.inventory.Count(uid).Creating)
	want, revision := p.Requests(fn), ""
	for range n {
		node, ok := place()
		if !ok {
			break
		}
		if revision == "" {
			revision = fn.Revision() // which costs more than to find no room
		}
		token := rand.Text()
		key := p.inventory.Order(uid, term, Instance{
			Revision: revision,
			Token:    token,
			Node:     node,
			Requests: want,
			Ordered:  now,
			StartBy:  now.Add(startLimit(fn)),
		})
		keys = append(keys, key)
		specs = append(specs, InstanceSpec{Function: fn, CID: key.CID, Token: token, Node: node})
	}
	return specs, keys
}

// startLimit is how long an instance may take to pull.
func startLimit(fn *v1alpha1.Function) time.Duration {
	return fn.Spec.StartupTimeout.Duration + startGrace
}

// Candidates are the nodes that instances of a function may use, with what is
// requested of each now.
func (p *Provisioner) Candidates(fn *v1alpha1.Function) nodepick.Candidates {
	if p.deps.Nodes != nil {
		return p.deps.Nodes.Candidates(fn)
	}
	return nodepick.Candidates{Nodes: p.nodes()}
}

// Requests is what an instance of a function requests of its node, with its
// agent.
func (p *Provisioner) Requests(fn *v1alpha1.Function) nodepick.Amount {
	return Requests(fn, p.config.AgentRequests)
}

// Check checks an agent's proof and returns which instance it is of. The error is
// ErrUnknownInstance, wraps ErrBadToken, is a passing one of Deps.Verify, or nil.
func (p *Provisioner) Check(key Key, proof string) (Instance, error) {
	if p.deps.Verify != nil {
		if err := p.deps.Verify(key, proof); err != nil {
			return Instance{}, err
		}
		p.mu.Lock()
		defer p.mu.Unlock()
		return p.inventory.Get(key)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.inventory.Check(key, proof)
}

// Connect notes that the stream of an agent that was checked is there.
func (p *Provisioner) Connect(key Key) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.inventory.Connect(key)
}

// Disconnect notes that an agent's stream ended.
func (p *Provisioner) Disconnect(key Key) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.inventory.Disconnect(key, p.deps.Now())
}

// Pulled notes that an instance asked for work. It tells whether it did so for the
// first time, and how long it took from its order; 0 if that is not known.
func (p *Provisioner) Pulled(key Key) (took time.Duration, first bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	took, first = p.inventory.Pulled(key, p.deps.Now())
	if first {
		p.guards.drop(key.FunctionUID)
	}
	return took, first
}

// Withdraw ends up to n of a function's instances that are being created, the
// youngest first, and returns which. That is no failure of theirs: each is reported
// as gone, not lost.
func (p *Provisioner) Withdraw(uid string, n int) []Key {
	p.mu.Lock()
	withdrawn := p.inventory.Withdraw(uid, n)
	p.mu.Unlock()
	for _, key := range withdrawn {
		p.deps.Runtime.Stop(key.FunctionUID, key.CID)
	}
	return withdrawn
}

// Leaving notes that an instance will end by itself, as it should. One that has
// not ended within that time, counted from the first notice, is stopped.
func (p *Provisioner) Leaving(key Key, within time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.inventory.Leave(key, p.deps.Now().Add(within))
}

// Broken notes that an agent has given its instance up because of what its
// function did. It ends by itself, as with Leaving. The code is one of the condition
// reasons of a Function.
func (p *Provisioner) Broken(key Key, code, detail string, within time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.inventory.Break(key, code, detail, p.deps.Now().Add(within))
}

// StartFailed notes that an agent gave up waiting for its function. The runtime
// is told to end the instance; its exit brings the last log lines. The code is
// one of the condition reasons of a Function.
func (p *Provisioner) StartFailed(key Key, code, reason string) {
	p.mu.Lock()
	p.inventory.Blame(key, code, reason)
	p.mu.Unlock()
	p.deps.Runtime.Stop(key.FunctionUID, key.CID)
}

// Stop ends an instance that is not wanted any more.
func (p *Provisioner) Stop(key Key) {
	p.mu.Lock()
	p.inventory.Leave(key, time.Time{})
	p.mu.Unlock()
	p.deps.Runtime.Stop(key.FunctionUID, key.CID)
}

// Forgive drops what is known of a function's failures, and lets instances of other
// revisions than this one, the function's present one, add nothing to it.
func (p *Provisioner) Forgive(uid, revision string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.inventory.Supersede(uid, revision)
	p.guards.drop(uid)
}

// Forget drops what is known of a function that is gone, as far as its instances
// have ended, and of the others when they end.
func (p *Provisioner) Forget(uid string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.guards.drop(uid)
	p.inventory.Forget(uid)
}

// Has tells whether an instance was ordered, or taken over, and has not ended.
func (p *Provisioner) Has(key Key) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	_, err := p.inventory.Get(key)
	return err == nil
}

// Count counts a function's instances.
func (p *Provisioner) Count(uid string) Counts { return p.inventory.Count(uid) }

// Connected says of each instance that is not leaving whether its agent's stream is
// believed to be there.
func (p *Provisioner) Connected() map[Key]bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.inventory.Connected()
}

// Outdated is how many of a function's instances were started for another revision.
func (p *Provisioner) Outdated(uid, revision string) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.inventory.Outdated(uid, revision)
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
	why, at, failing := p.guards.of(uid).Failing()
	return why, max(0, at.Sub(p.deps.Now())), failing
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
		case key := <-p.vanished:
			p.exited(endOf(key), events)
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
	failure := failureOf(in, exit)
	startFailed := err == nil && in.State == Creating && !in.Adopted
	if startFailed && !in.Superseded {
		guard := p.guards.of(key.FunctionUID)
		guard.Failed(p.deps.Now(), failure)
		p.guards.set(key.FunctionUID, guard)
	}
	p.mu.Unlock()

	switch {
	case err != nil:
		p.deps.Log.Warn("an instance ended that was not ordered", "cid", exit.CID, "reason", exit.Reason)
	case startFailed:
		events.StartFailed(key, failure)
	default:
		events.Gone(key, in.State != Leaving || in.Broken != "", failure)
	}
}

// failureOf says why an instance ended that should not have. What the runtime
// saw is more exact than what the agent could tell, if it names a cause.
func failureOf(in Instance, exit Exit) StartFailure {
	failure := StartFailure{Revision: in.Revision, Code: cmp.Or(exit.Code, v1alpha1.ReasonStartFailed), Reason: exit.Reason, LogTail: exit.LogTail}
	switch {
	case exit.Code == v1alpha1.ReasonNodeLost:
		// Then its agent was silent for that reason.
	case in.Blamed != "":
		failure.Code, failure.Reason = in.BlamedCode, in.Blamed
	case in.Broken != "" && exit.Code == "":
		failure.Code, failure.Reason = in.BrokenCode, in.Broken
	}
	return failure
}

// stopOverdue ends instances that should have been heard of. Their exits tell
// the rest.
func (p *Provisioner) stopOverdue() {
	p.mu.Lock()
	overdue := p.inventory.Overdue(p.deps.Now(), silencePatience)
	for _, in := range overdue {
		p.inventory.Blame(in.Key, overdueCode(in), overdueReason(in.State))
	}
	p.mu.Unlock()
	for _, in := range overdue {
		p.deps.Log.Warn("stopping an overdue instance", "cid", in.CID, "state", in.State.String(), "reason", overdueReason(in.State))
		p.deps.Runtime.Stop(in.FunctionUID, in.CID)
	}
}

// overdueCode tells an instance that did not come from one that had been there.
func overdueCode(in Instance) string {
	if in.State == Creating && !in.Adopted {
		return v1alpha1.ReasonStartTimeout
	}
	return v1alpha1.ReasonAgentSilent
}

func overdueReason(s State) string {
	if s == Leaving {
		return "it did not end in time after it was let go"
	}
	return "its agent was not heard of in time"
}
