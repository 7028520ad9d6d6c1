package provisioner

import (
	"cmp"
	"context"
	"crypto/rand"
	"log/slog"
	"time"

	"github.com/windlass-dev/windlass/api/v1alpha1"
	"github.com/windlass-dev/windlass/pkg/invocation"
	"github.com/windlass-dev/windlass/pkg/provisioner/placement"
)

// reconnectTimeout is how long a created instance may be without a stream before
// it is stopped: long enough for an agent to reconnect.
const reconnectTimeout = 10 * time.Second

// overdueEvery is how often the Provisioner looks for overdue instances. If it could not for
// pauseThreshold, the process was paused, for so long that its peers may have taken over.
const (
	overdueEvery   = time.Second
	pauseThreshold = 1500 * time.Millisecond
)

// startGrace is added to an instance's startup timeout: its agent measures from its own start,
// and reports a better reason.
const startGrace = 5 * time.Second

// Config has the settings of a Provisioner.
type Config struct {
	// Nodes are all nodes with their capacities, unless Deps.Nodes is set.
	Nodes []placement.Node
	// AgentRequests is what an agent requests on its instance's node.
	AgentRequests placement.Amount
}

// Deps are the parts that a Provisioner uses.
type Deps struct {
	Driver Driver
	// Adopting is the same driver if its instances outlive this process, and Nodes returns
	// where they may run; both may be nil.
	Adopting AdoptingDriver
	Nodes    Nodes
	// Assigner is the same driver if it keeps spare instances, and Identify returns the
	// instance that an agent's proof belongs to; both may be nil. The error is
	// ErrUnknownInstance, wraps ErrBadToken or is transient.
	Assigner Assigner
	Identify func(proof string) (Key, error)
	// Lister is the same driver if it lists its instances, and Drift if they may come and go
	// unnoticed; both may be nil.
	Lister InstanceLister
	Drift  DriftDetector
	// StartObserver is the same driver if it observes the progress of starts; may be nil.
	StartObserver StartObserver
	// Verify checks an agent's proof for an instance. If it is nil, the proof is the token
	// that the instance was started with. The error wraps ErrBadToken or is transient.
	Verify func(key Key, proof string) error
	Now    func() time.Time
	Log    *slog.Logger
}

// Events receives the ends of instances, and says which silence is an end. Its methods are
// called without a lock held, one at a time.
type Events interface {
	// Owns says whether the scheduler owns a function for all that it knows. If it does not, an
	// instance that is silent here may work for another scheduler.
	Owns(functionUID string) bool
	// StartFailed says that an instance ended before its first pull.
	StartFailed(key Key, why StartFailure)
	// Gone says that an instance ended after its first pull. lost means that the end was
	// unexpected.
	Gone(key Key, lost bool, why StartFailure)
}

// Provisioner launches instances and follows them to their end. Its parts hold the state, each
// with its own lock; the Provisioner only acts.
type Provisioner struct {
	*Inventory
	*ChangeTracker
	*NodeView
	*Authenticator
	*Auditor

	deps Deps
}

// New makes a Provisioner. It starts nothing.
func New(config Config, deps Deps) *Provisioner {
	inventory := newInventory(deps.Now)
	p := &Provisioner{
		Inventory:     inventory,
		ChangeTracker: inventory.changes,
		NodeView:      &NodeView{config: config, driver: deps.Nodes, usage: inventory.usage},
		Authenticator: &Authenticator{inventory: inventory, verify: deps.Verify, identify: deps.Identify},
		deps:          deps,
	}
	p.Auditor = &Auditor{
		inventory: inventory, lister: deps.Lister, detector: deps.Drift,
		vanished: make(chan Key, vanishedBuffer),
	}
	return p
}

// LaunchResult is the outcome of a launch.
type LaunchResult struct {
	// Keys are the launched instances.
	Keys []Key
	// NoRoom explains, if fewer than wanted were launched for lack of room, why no node has
	// room, in less than 1 KiB.
	NoRoom string
}

// LaunchOn launches up to n instances of a function, each on the node that place returns, and
// returns at once: fewer if place returns no more, or while the function's start back-off
// lasts. place must not call the Provisioner.
//
// All instances enter the inventory before any is started, so that no exit can precede its
// launch.
func (p *Provisioner) LaunchOn(fn *v1alpha1.Function, term invocation.Term, n int, place func() (node string, ok bool)) (keys []Key) {
	var each Instance // made only once there is room: mostly there is none, and it costs more
	launched := p.Inventory.launch(string(fn.UID), names(fn, term), n, func() (Instance, bool) {
		node, ok := place()
		if !ok {
			return Instance{}, false
		}
		if each.Revision == "" {
			now := p.deps.Now()
			each = Instance{Function: fn.Key(), Revision: fn.Revision(), Requests: p.Requests(fn), Launched: now, StartWithin: startLimit(fn)}
		}
		each.Node, each.Token = node, rand.Text()
		return each, true
	})
	for _, in := range launched {
		keys = append(keys, in.Key)
		p.deps.Driver.Start(InstanceSpec{Function: fn, CID: in.CID, Token: in.Token, Node: in.Node})
	}
	return keys
}

// names gives a unit's instances their CIDs. Units of one function can have the same term,
// and pods and logs are named by function and CID, so the revision's number comes first.
func names(fn *v1alpha1.Function, term invocation.Term) func(seq uint64) invocation.CID {
	if fn.FunctionRevisionName() == "" {
		return term.CID
	}
	return func(seq uint64) invocation.CID { return invocation.CID(fn.Revision()+"-") + term.CID(seq) }
}

// startLimit is how long an instance may take from its creation until its first pull.
func startLimit(fn *v1alpha1.Function) time.Duration {
	return fn.Spec.Template.StartupTimeout.Duration + startGrace
}

// CancelLaunches ends up to n of a function's starting instances whose agents have not
// connected, the youngest first, and returns them. They do not count as failures: each is
// reported as gone, not lost.
func (p *Provisioner) CancelLaunches(uid string, n int) []Key {
	cancelled := p.Inventory.cancelLaunches(uid, n)
	for _, key := range cancelled {
		p.deps.Driver.Stop(key.FunctionUID, key.CID, false)
	}
	return cancelled
}

// End ends an instance, or records that it ends by itself. If it is ended because it did not
// start, its exit carries the last log lines. One that is starting gets no tickets when it is ended.
func (p *Provisioner) End(key Key, how Ending) {
	finished := p.Inventory.markEnding(key, how)
	if how.Within == 0 {
		p.deps.Driver.Stop(key.FunctionUID, key.CID, finished)
	}
}

// Run follows instances to their end, and passes their ends to events, until ctx ends.
func (p *Provisioner) Run(ctx context.Context, events Events) error {
	overdue := time.NewTicker(overdueEvery)
	defer overdue.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case exit := <-p.deps.Driver.Exits():
			p.handleExit(exit, events)
		case key := <-p.vanished:
			p.handleExit(endOf(key), events)
		case <-overdue.C:
			p.stopOverdue(events)
		}
	}
}

// handleExit handles the exit of an instance.
func (p *Provisioner) handleExit(exit Exit, events Events) {
	in, why, known := p.Inventory.recordExit(exit)
	switch {
	case !known:
		p.deps.Log.Warn("an instance ended that was not launched", "functionUID", exit.FunctionUID, "cid", exit.CID, "reason", exit.Reason)
	case in.startFailed():
		events.StartFailed(in.Key, why)
	default:
		events.Gone(in.Key, in.State != Leaving || in.AgentReason != "", why)
	}
}

// failureOf is why an instance ended unexpectedly. The driver's reason is more exact than the
// agent's if it names a cause.
func failureOf(in Instance, exit Exit) StartFailure {
	failure := StartFailure{
		Code: cmp.Or(exit.Code, v1alpha1.ReasonStartFailed), Reason: exit.Reason, LogTail: exit.LogTail, LogEmpty: exit.LogEmpty,
	}
	switch {
	case exit.Code == v1alpha1.ReasonNodeLost:
		// Then its agent was silent for that reason.
	case exit.CutOff && in.CauseCode == v1alpha1.ReasonStartTimeout && in.unheard():
		failure.Code, failure.Reason = v1alpha1.ReasonClusterUnavailable, "the Kubernetes API could not be reached while the pod was to start"
	case in.Cause != "" && exit.Code == in.CauseCode && exit.Reason != "":
		// It knows more of what the instance was blamed for.
	case in.Cause != "":
		failure.Code, failure.Reason = in.CauseCode, in.Cause
	case in.AgentReason != "" && exit.Code == "":
		failure.Code, failure.Reason = in.AgentCode, in.AgentReason
	}
	return failure
}

// stopOverdue ends overdue instances. Their exits follow.
func (p *Provisioner) stopOverdue(events Events) {
	for _, in := range p.Inventory.takeOverdue(events.Owns, p.createdAt) {
		p.deps.Log.Warn("stopping an overdue instance", "function", in.Function.String(), "cid", in.CID,
			"state", in.State.String(), "launched", in.Launched, "reason", in.Cause)
		p.deps.Driver.Stop(in.FunctionUID, in.CID, in.Finished)
	}
}

// createdAt is when the driver had created an instance; zero if it has not, for which the instance
// is not to blame: the driver may wait for the API server, or for its turn to ask it.
func (p *Provisioner) createdAt(in *Instance) time.Time {
	if p.deps.StartObserver == nil {
		return in.Launched
	}
	created, _ := p.deps.StartObserver.Progress(in.FunctionUID, in.CID)
	return created
}

// Progress is how far the start of an instance has come; a zero time is unknown.
type Progress struct {
	// Launched is when it was launched, Created when the driver had created it, and Sandboxed
	// when its pod had its network.
	Launched, Created, Sandboxed time.Time
}

// Progress returns how far the start of an instance has come.
func (p *Provisioner) Progress(key Key) Progress {
	in, known := p.Lookup(key)
	if !known {
		return Progress{}
	}
	progress := Progress{Launched: in.Launched}
	if p.deps.StartObserver != nil {
		progress.Created, progress.Sandboxed = p.deps.StartObserver.Progress(key.FunctionUID, key.CID)
	}
	return progress
}
