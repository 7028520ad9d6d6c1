package cli

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/windlass-dev/windlass/api/v1alpha1"
	"github.com/windlass-dev/windlass/pkg/invoke"
)

const (
	// lookAgain is how often a function that is waited for is looked at.
	lookAgain = 500 * time.Millisecond
	// defaultReadyTime is what deploy --wait waits, and defaultGoneTime
	// delete.
	defaultReadyTime = 30 * time.Second
	defaultGoneTime  = 2 * time.Minute
)

// passing are reasons for not starting that may pass while one waits.
var passing = []string{v1alpha1.ReasonNoCapacity, v1alpha1.ReasonNodeLost, v1alpha1.ReasonNodeRefused}

// awaitStart asks for an instance of a function as it was applied, and waits until it
// is known whether one starts.
func (d *deployer) awaitStart(ctx context.Context, t *target, applied *v1alpha1.Function, limit time.Duration) (*v1alpha1.Function, error) {
	ask := func(fn *v1alpha1.Function) error {
		fn.AskStart(d.now().Add(limit))
		return nil
	}
	asked, err := t.Change(ctx, applied.Key(), ask, false)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	fn, before := applied, readyOf(asked.Function)
	for {
		ready := readyOf(fn)
		switch verdict(fn, applied, before) {
		case startGone:
			return nil, fmt.Errorf("function %s was deleted while it was waited for", fn.Key())
		case startSeen:
			return fn, nil
		case startFailed:
			return nil, fmt.Errorf("function %s does not start: %s\nsee windlass describe %s and windlass logs %s",
				fn.Key(), reasonOf(ready), d.short(fn.Key()), d.short(fn.Key()))
		}
		select {
		case <-ctx.Done():
			return nil, waitedf("function %s has not started yet, after %s: %s\nsee windlass describe %s, or wait longer with --wait=2m",
				fn.Key(), limit, reasonOf(ready), d.short(fn.Key()))
		case <-time.After(lookAgain):
		}
		again, err := t.Get(ctx, applied.Key())
		switch {
		case err == nil:
			fn = again
		case ctx.Err() == nil:
			return nil, err
		}
	}
}

// start is what a status says of a start.
type start int

const (
	startUnknown start = iota
	startSeen
	startFailed
	startGone
)

// verdict is what the status of a function says of the start of one that was applied.
// Conditions of older generations say nothing, and a failure that was known when the
// start was asked for says nothing of that.
func verdict(fn, applied *v1alpha1.Function, before metav1.Condition) start {
	ready := readyOf(fn)
	switch {
	case fn.UID != applied.UID:
		return startGone
	case observed(fn, ready) < applied.Generation:
		return startUnknown
	case ready.Status == metav1.ConditionTrue && ready.Reason == v1alpha1.ReasonStarted:
		return startSeen
	case ready.Status != metav1.ConditionFalse, ready == before, slices.Contains(passing, ready.Reason):
		return startUnknown
	}
	return startFailed
}

// observed is the generation that the condition is about.
func observed(fn *v1alpha1.Function, ready metav1.Condition) int64 {
	return cmp.Or(ready.ObservedGeneration, fn.Status.ObservedGeneration)
}

func reasonOf(ready metav1.Condition) string {
	text := cmp.Or(ready.Reason, "nobody has looked at it yet; see that the controller of Windlass runs")
	if ready.Message != "" {
		text += ": " + strings.TrimSpace(ready.Message)
	}
	return text
}

// awaitGone waits until a function that is being deleted is gone. It tells when
// it has to wait at all, and what for.
func (d *remover) awaitGone(ctx context.Context, r registry, key invoke.FunctionKey, limit time.Duration) error {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	for told := ""; ; {
		fn, err := r.Get(ctx, key)
		switch {
		case isNotFound(err), err == nil && fn.DeletionTimestamp == nil:
			// One that is not being deleted was made anew.
			return nil
		case err != nil && ctx.Err() == nil:
			return err
		case err == nil && told == "":
			told = drains(fn)
			fmt.Fprintf(d.Err, "waiting for function %s: %s\n", key, told)
		case err == nil:
			told = drains(fn)
		}
		select {
		case <-ctx.Done():
			return waitedf("function %s is still there after %s: %s; it goes by itself, see windlass describe %s, or wait longer with --timeout",
				key, limit, cmp.Or(told, "its state is not known"), d.short(key))
		case <-time.After(lookAgain):
		}
	}
}

// drains says what keeps a function that is being deleted.
func drains(fn *v1alpha1.Function) string {
	counts := fn.Status.Instances
	if left := counts.Created + counts.Creating; left > 0 {
		return fmt.Sprintf("%d of its instances have not ended, and %d of them run a call", left, counts.Busy)
	}
	if len(fn.Finalizers) > 0 {
		return "it has the finalizer " + strings.Join(fn.Finalizers, ", ") + ", which goes when its last instance has ended"
	}
	return "the cluster removes it"
}
