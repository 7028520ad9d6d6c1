package local

import (
	"context"
	"log/slog"
	"slices"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/windlass-dev/windlass/api/v1alpha1"
	"github.com/windlass-dev/windlass/pkg/catalog"
	"github.com/windlass-dev/windlass/pkg/catalog/file"
	"github.com/windlass-dev/windlass/pkg/invocation"
	"github.com/windlass-dev/windlass/pkg/rollout"
)

const (
	// lookSoon and lookLate bound how long it takes to see that an instance of a revision
	// has started: the longer nothing has changed, the less it is waited for.
	lookSoon = 50 * time.Millisecond
	lookLate = 500 * time.Millisecond
	// tryAgain is how long after a failure of the disk the next attempt is.
	tryAgain = 5 * time.Second
)

// observer knows the instances of units.
type observer interface {
	Known(unit *v1alpha1.Function) rollout.Observation
}

// rollouts replaces the controller of a cluster: it passes observations of instances to the
// store, which decides about rollouts, and writes the conditions.
type rollouts struct {
	store *file.Store
	seen  observer
	log   *slog.Logger

	// unordered says that there is no node scheduling, so that classes mean nothing.
	unordered bool

	// mu guards what is below.
	mu sync.Mutex
	// open are the functions to look at: those that have changed, and those with a
	// revision that may be proven yet.
	open map[invocation.FunctionKey]struct{}
	// changed is when one of them did last, and wake holds an element then.
	changed time.Time
	wake    chan struct{}
	// said are the last computed conditions of functions, by UID.
	said map[string]v1alpha1.FunctionStatus
	// warned says that somebody was told so of classes.
	warned bool
}

func newRollouts(store *file.Store, seen observer, log *slog.Logger) *rollouts {
	return &rollouts{
		store: store, seen: seen, log: log,
		open: make(map[invocation.FunctionKey]struct{}), wake: make(chan struct{}, 1), said: make(map[string]v1alpha1.FunctionStatus),
	}
}

// Run handles changed functions, functions that wait for a proof, and functions with a
// decision that is due, until ctx ends.
func (r *rollouts) Run(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	var watching sync.WaitGroup
	defer watching.Wait()
	defer cancel()
	// It watches memory, which never fails.
	watching.Go(func() { _ = r.store.Catalog().Watch(ctx, r.functionChanged) })
	for ctx.Err() == nil {
		r.awaitChange(ctx, r.updateAll())
	}
	return nil
}

func (r *rollouts) functionChanged(e catalog.Event) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if e.Entry == nil {
		delete(r.said, e.UID)
		return
	}
	r.warnOfClass(e.Key, e.Entry)
	r.open[e.Key], r.changed = struct{}{}, time.Now()
	select {
	case r.wake <- struct{}{}:
	default:
	}
}

// warnOfClass says once that what a function asks for needs node scheduling. It is called with mu
// locked.
func (r *rollouts) warnOfClass(key invocation.FunctionKey, entry *rollout.Entry) {
	for _, unit := range entry.Units {
		if r.unordered && unit.Spec.Template.Scheduling.Asked() != "" {
			if !r.warned {
				r.log.Warn("the class and the slice of functions mean nothing without --node-scheduling=auto", "function", key)
			}
			r.warned = true
		}
	}
}

// updateAll updates all functions that are due, and returns the time until the next is; 0 if
// none is before something changes.
func (r *rollouts) updateAll() (next time.Duration) {
	r.mu.Lock()
	open, quiet := r.open, time.Since(r.changed)
	r.open = make(map[invocation.FunctionKey]struct{})
	r.mu.Unlock()
	soonest := func(in time.Duration) {
		if next == 0 || in < next {
			next = in
		}
	}
	for key := range open {
		waits, err := r.updateFunction(key)
		if err != nil {
			r.log.Error("what has become of a function cannot be kept", "function", key, "err", err)
			soonest(tryAgain)
		} else if waits {
			soonest(min(max(quiet/20, lookSoon), lookLate))
		}
		if waits || err != nil {
			r.mu.Lock()
			r.open[key] = struct{}{}
			r.mu.Unlock()
		}
	}
	due, err := r.store.Advance()
	if err != nil {
		r.log.Error("what is due for functions cannot be kept", "err", err)
		soonest(tryAgain)
	} else if !due.IsZero() {
		soonest(max(time.Until(due), lookSoon))
	}
	return next
}

// awaitChange waits for a change, or for most if that is not 0.
func (r *rollouts) awaitChange(ctx context.Context, most time.Duration) {
	var over <-chan time.Time
	if most > 0 {
		timer := time.NewTimer(most)
		defer timer.Stop()
		over = timer.C
	}
	select {
	case <-ctx.Done():
	case <-r.wake:
	case <-over:
	}
}

// updateFunction passes what was observed of a function's instances to the store. waits says
// that one of its revisions may still be proven.
func (r *rollouts) updateFunction(key invocation.FunctionKey) (waits bool, err error) {
	entry, ok := r.store.Catalog().Get(key)
	if !ok {
		return false, nil
	}
	if err := r.store.Observe(key, r.known(entry)); err != nil {
		return true, err
	}
	history, _ := r.store.History(key)
	for _, revision := range history.Revisions {
		if !revision.Proven() && slices.ContainsFunc(entry.Units, func(unit *v1alpha1.Function) bool { return unit.UID == revision.UID }) {
			return true, nil
		}
	}
	return false, nil
}

// known is what is seen of the instances of a function's revisions, by their names.
func (r *rollouts) known(entry *rollout.Entry) map[string]rollout.Observation {
	known := make(map[string]rollout.Observation, len(entry.Units))
	for _, unit := range entry.Units {
		known[unit.FunctionRevisionName()] = r.seen.Known(unit)
	}
	return known
}

// fillStatus writes conditions and rollout into a status, if the store has the function.
func (r *rollouts) fillStatus(fn *v1alpha1.Function, status *v1alpha1.FunctionStatus) {
	entry, ok := r.store.Catalog().Get(fn.Key())
	if !ok || entry.UID() != string(fn.UID) {
		return
	}
	// What is said and what is done must be of the same moment.
	known := r.known(entry)
	if err := r.store.Observe(fn.Key(), known); err != nil {
		r.log.Error("what has become of a function cannot be kept", "function", fn.Key(), "err", err)
	}
	history, ok := r.store.History(fn.Key())
	if !ok {
		return
	}
	rollout.StateOf(history.Function).Write(status)
	r.mu.Lock()
	defer r.mu.Unlock()
	so := history.Function.DeepCopy()
	so.Status = r.said[entry.UID()]
	status.Conditions, status.ObservedGeneration = rollout.Conditions(rollout.ConditionInput{
		Now: time.Now(), Function: so, Plan: history.Plan, Revisions: history.Revisions, Units: known, Hosts: ownHosts(so), Class: ownClass(so, r.unordered),
	})
	for _, host := range so.Spec.Expose.Hosts {
		status.Hosts = append(status.Hosts, v1alpha1.HostStatus{Hostname: host, State: v1alpha1.HostNotPermitted})
	}
	r.said[entry.UID()] = v1alpha1.FunctionStatus{Conditions: status.Conditions, ObservedGeneration: status.ObservedGeneration}
}

// ownHosts refuses the hosts that a function asks for. Any web site can let a name lead to
// this machine, and its pages would then read what functions answer.
func ownHosts(fn *v1alpha1.Function) metav1.Condition {
	if len(fn.Spec.Expose.Hosts) == 0 {
		return metav1.Condition{}
	}
	return metav1.Condition{Status: metav1.ConditionFalse, Reason: v1alpha1.ReasonHostNotPermitted,
		Message: "local mode answers for localhost only; the hosts of spec.expose need a cluster, and here the function is called at its URL"}
}

// ownClass permits LatencyCritical to all functions: they are of one person, who owns the machine.
// Without node scheduling it says that nothing of what they ask for has an effect.
func ownClass(fn *v1alpha1.Function, unordered bool) metav1.Condition {
	switch asked := fn.Spec.Template.Scheduling.Asked(); {
	case asked == "":
		return metav1.Condition{}
	case unordered:
		return metav1.Condition{Status: metav1.ConditionFalse, Reason: v1alpha1.ReasonNodeSchedulingOff,
			Message: asked + " has no effect without node scheduling; start windlass up with --node-scheduling=auto, or remove spec.template.scheduling"}
	case fn.Spec.Template.Scheduling.Class != v1alpha1.ClassLatencyCritical:
		return metav1.Condition{}
	}
	return metav1.Condition{Status: metav1.ConditionTrue, Reason: v1alpha1.ReasonPermitted,
		Message: "in local mode all functions may be LatencyCritical"}
}

// Revisions implements localapi.Archive: a function's revisions with the present observations
// of their instances.
func (r *rollouts) Revisions(key invocation.FunctionKey) []*v1alpha1.FunctionRevision {
	entry, ok := r.store.Catalog().Get(key)
	if !ok {
		return nil
	}
	known := r.known(entry)
	history, _ := r.store.History(key)
	revisions := make([]*v1alpha1.FunctionRevision, len(history.Revisions))
	for i, revision := range history.Revisions {
		revisions[i] = revision.DeepCopy()
		revisions[i].Status.Instances.Ready = int32(known[revision.Name].Ready)
	}
	return revisions
}
