package nodeagent

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"sync"
	"time"

	nodewire "github.com/windlass-dev/windlass/api/wire/node/v1alpha1"
	"github.com/windlass-dev/windlass/internal/kerneltimer"
	"github.com/windlass-dev/windlass/pkg/nodeagent/callorder"
)

// Agent is the node agent of a node: the service Node of the wire, and what samples and moves
// instances beside it.
type Agent struct {
	nodewire.UnimplementedNodeServer

	config  Config
	deps    Deps
	metrics *metrics
	started time.Time

	mu    sync.Mutex
	state state
}

// state is what the Agent's lock guards.
type state struct {
	core     *callorder.Core
	mode     mode
	breaths  *breaths
	sessions map[callorder.InstanceID]*session
	byKey    map[string]*session
	// functions counts the instances of each, and classes those of each class.
	functions map[functionKey]int
	classes   map[callorder.Class]int
	lastID    callorder.InstanceID
	// open counts streams, those included that have not said hello.
	open    int
	stopped bool
	looks   lookTimes
	life    lifeSigns
	// Times of the last looks.
	lookedAtMode, lookedAtLow, keptLow time.Duration
	// remindAt is when the first agent of those whose calls wait has to hear of it; 0 if none does.
	remindAt   time.Duration
	loadFailed bool
	// What the instances of these classes use.
	critical, batch usageMeter
	watched         []callorder.InstanceID
	coLocation      coLocation
}

type functionKey struct{ namespace, name string }

// New makes an Agent, and starts nothing.
func New(config Config, deps Deps) (*Agent, error) {
	if err := config.Validate(); err != nil {
		return nil, err
	}
	core, err := callorder.New(config.Calls)
	if err != nil {
		return nil, err
	}
	if deps.NewTimer == nil {
		deps.NewTimer = kerneltimer.Go
	}
	metrics := newMetrics(deps.Registry, config.Calls)
	metrics.show(core)
	return &Agent{
		config: config, deps: deps, metrics: metrics,
		started: deps.Now(),
		state: state{
			core: core, mode: mode{params: config.Mode}, breaths: newBreaths(config.Breath, config.Calls.Cores),
			sessions: map[callorder.InstanceID]*session{}, byKey: map[string]*session{}, functions: map[functionKey]int{}, classes: map[callorder.Class]int{},
			critical: newUsageMeter(callorder.LatencyCritical), batch: newUsageMeter(callorder.Batch),
			life:       lifeSigns{say: deps.Alive},
			coLocation: coLocation{params: config.CoLocation, numbers: config.CoreNumbers, metrics: metrics, log: deps.Log},
		},
	}, nil
}

// Run samples until ctx ends. It then ends all streams, accepts no other, and sets all instances
// to normal; the error names those that it could not.
func (a *Agent) Run(ctx context.Context) error {
	timer := a.deps.NewTimer(func() {
		a.mu.Lock()
		defer a.mu.Unlock()
		if !a.state.stopped {
			a.look(a.now())
		}
	})
	defer timer.Stop()
	a.mu.Lock()
	a.state.looks.timer = timer
	a.look(a.now())
	a.mu.Unlock()
	<-ctx.Done()
	return a.shutDown()
}

// now is the time as the core counts it.
func (a *Agent) now() time.Duration { return a.deps.Now().Sub(a.started) }

// shutDown ends all streams, and thereby all low bands.
func (a *Agent) shutDown() error {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.state.stopped = true
	var errs []error
	for _, s := range a.state.sessions {
		s.close(errStopping)
		errs = append(errs, a.leaveLocked(s))
	}
	return errors.Join(errs...)
}

// applyEvent applies an event and carries out its effects.
func (a *Agent) applyEvent(now time.Duration, e callorder.Event) {
	for _, effect := range a.state.core.Step(now, e) {
		switch effect := effect.(type) {
		case callorder.Grant:
			a.grant(now, effect)
		case callorder.SetBand:
			if s := a.state.sessions[effect.Instance]; s != nil {
				a.setBand(now, s, effect)
			}
		case callorder.AskAgain:
			if s := a.state.sessions[effect.Instance]; s != nil {
				s.setMode(a.state.mode.busy, true)
			}
		}
	}
}

func (a *Agent) grant(now time.Duration, g callorder.Grant) {
	s := a.state.sessions[g.Instance]
	if s == nil {
		return
	}
	if s.class != callorder.Standard {
		// An agent that need not ask may nevertheless. Its calls are not known by grants.
		s.reply(&nodewire.ComputeReply{Kind: &nodewire.ComputeReply_Grant{Grant: &nodewire.Grant{Ask: g.Ask}}})
		return
	}
	a.metrics.grants.Inc()
	a.metrics.wait.Observe(g.Waited.Seconds())
	s.call = askedCall{granted: true, ask: g.Ask, since: now, from: s.usage}
	s.call.expected, _ = a.state.core.Mean(s.function.namespace, s.function.name)
	s.reply(&nodewire.ComputeReply{Kind: &nodewire.ComputeReply_Grant{Grant: &nodewire.Grant{Ask: g.Ask}}})
}

func (a *Agent) setBand(now time.Duration, s *session, e callorder.SetBand) {
	if e.Low {
		a.metrics.demotions.WithLabelValues(string(e.Why)).Inc()
		a.state.breaths.lowered(now, s.id, s.usage)
	} else {
		a.state.breaths.lifted(s.id)
	}
	s.low = e.Low
	a.writeBand(s)
	s.reply(&nodewire.ComputeReply{Kind: &nodewire.ComputeReply_Low{Low: &nodewire.Low{Low: e.Low}}})
}

// belongsLow reports whether an instance is to be in the low band now.
func (a *Agent) belongsLow(s *session) bool { return s.low && !a.state.breaths.breathing(s.id) }

// writeBand puts an instance into the band where it belongs now. It is called again until that
// succeeds.
func (a *Agent) writeBand(s *session) {
	low := a.belongsLow(s)
	if low == s.inLow {
		return
	}
	switch err := s.group.SetLow(low); {
	case err == nil:
		a.metrics.bands.Inc()
		s.inLow, s.failing = low, false
	case errors.Is(err, errors.ErrUnsupported):
		s.inLow, s.bandless = low, true
	default:
		a.noteFailure(s, low, err)
	}
}

// keepLow puts an instance back into the low band that somebody else has lifted.
func (a *Agent) keepLow(s *session) {
	if !s.inLow || s.bandless || !a.belongsLow(s) {
		return
	}
	if err := s.group.SetLow(true); err != nil {
		a.noteFailure(s, true, err)
		return
	}
	s.failing = false
}

func (a *Agent) noteFailure(s *session, low bool, err error) {
	a.metrics.failed.WithLabelValues(fileOf(err)).Inc()
	if !s.failing {
		a.deps.Log.Warn("an instance cannot be moved between bands", "err", err, "low", low, "instance", s.name)
	}
	s.failing = true
}

// fileOf is the name of the file that an error is about.
func fileOf(err error) string {
	var of *fs.PathError
	if errors.As(err, &of) {
		return filepath.Base(of.Path)
	}
	return ""
}

// joinLocked enters an instance that has proven who it is. Its earlier stream has ended, even if
// nobody has noticed.
func (a *Agent) joinLocked(s *session) error {
	if a.state.stopped {
		return errStopping
	}
	if before := a.state.byKey[s.key]; before != nil {
		before.close(errReplaced)
		if err := a.leaveLocked(before); err != nil {
			a.deps.Log.Warn("an instance's group cannot be closed", "err", err, "instance", s.name)
		}
	}
	a.state.lastID++
	s.id = a.state.lastID
	a.state.sessions[s.id], a.state.byKey[s.key] = s, s
	a.state.functions[s.function]++
	a.state.classes[s.class]++
	a.metrics.showSessions(a.state.sessions)
	s.look(a.now())
	s.counted = s.usage
	a.metrics.countBatch(s)
	a.applyEvent(a.now(), callorder.Joined{
		Instance: s.id, Namespace: s.function.namespace, Function: s.function.name, Class: s.class, Slice: s.ownSlice, MustAsk: s.mustAsk, Usage: s.usage, Name: s.key,
	})
	a.state.coLocation.joined(a.now(), a.state.sessions, s)
	if a.state.looks.rests {
		a.state.looks.lookAfter(a.now(), 0)
	}
	return nil
}

// leaveLocked forgets an instance, lets it go and sets its group to normal, once.
func (a *Agent) leaveLocked(s *session) error {
	if a.state.sessions[s.id] != s {
		return nil
	}
	a.endCall(a.now(), s, true)
	a.applyEvent(a.now(), callorder.Left{Instance: s.id})
	a.state.breaths.lifted(s.id)
	delete(a.state.sessions, s.id)
	delete(a.state.byKey, s.key)
	countLast(a, s)
	a.state.classes[s.class]--
	if a.state.functions[s.function]--; a.state.functions[s.function] == 0 {
		delete(a.state.functions, s.function)
		a.metrics.dropFunction(s.function)
	}
	if len(a.state.sessions) == 0 {
		a.relax()
	}
	a.metrics.showSessions(a.state.sessions)
	held := a.state.coLocation.left(a.now(), a.state.sessions, s)
	if err := s.group.Close(); err != nil {
		return errors.Join(held, fmt.Errorf("nodeagent: the group of %s: %w", s.name, err))
	}
	return held
}

// countLast counts what a batch instance that has left used since the last look. A function may have
// instances of an older revision, which has another class.
func countLast(a *Agent, s *session) {
	s.look(a.now())
	a.metrics.countBatch(s)
	for _, other := range a.state.sessions {
		if other.function == s.function && other.class == callorder.Batch {
			return
		}
	}
	a.metrics.dropBatch(s.function)
}

// relax makes the node calm when nobody is left who could ask.
func (a *Agent) relax() {
	a.state.mode = mode{params: a.config.Mode}
	a.applyEvent(a.now(), callorder.ModeChanged{})
	a.metrics.showBusy(false)
	a.metrics.show(a.state.core)
	a.metrics.low.Set(0)
	a.metrics.showInstances(nil)
}
