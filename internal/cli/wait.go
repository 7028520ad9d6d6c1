package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/windlass-dev/windlass/api/v1alpha1"
	"github.com/windlass-dev/windlass/internal/kubeclient"
	"github.com/windlass-dev/windlass/internal/sleep"
	"github.com/windlass-dev/windlass/pkg/invocation"
)

const (
	// lookAgain is how often a function that is waited for is looked at.
	lookAgain = 500 * time.Millisecond
	// gatewaysHear is how long the gateways of a cluster may take to hear what was heard
	// here. They and this command follow the API server each for itself, and those who
	// deploy may not ask them.
	gatewaysHear = time.Second
	// defaultReadyTime is what deploy --wait waits, and defaultGoneTime
	// delete.
	defaultReadyTime = 30 * time.Second
	defaultGoneTime  = 2 * time.Minute
)

// passing are reasons for not starting that may pass while one waits.
var passing = []string{v1alpha1.ReasonNoCapacity, v1alpha1.ReasonNodeLost, v1alpha1.ReasonNodeRefused, v1alpha1.ReasonNodeFull, v1alpha1.ReasonClusterUnavailable}

// awaitProof waits until the revision of a function as it was applied is proven and has
// its calls at all gateways, or is known not to start. What it returns is the function then.
func (d *deployer) awaitProof(ctx context.Context, t *target, applied *v1alpha1.Function, limit time.Duration) (*v1alpha1.Function, error) {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	fn, away := applied, trouble{finder: d.finder}
	for {
		switch verdict, why := proofOf(fn, applied); verdict {
		case proofGone:
			return nil, fmt.Errorf("function %s was deleted while it was waited for", fn.Key())
		case proofSeen:
			if t.inCluster() {
				sleep.For(ctx, gatewaysHear)
			}
			return fn, nil
		case proofFailed:
			return nil, fmt.Errorf("function %s does not start: %s\n%ssee windlass describe %s and windlass logs %s",
				fn.Key(), reasonOf(why), stillServing(fn), d.shortName(fn.Key()), d.shortName(fn.Key()))
		}
		select {
		case <-ctx.Done():
			return nil, timeoutf("function %s has not started yet, after %s: %s\n%s%ssee windlass rollout status %s, or wait longer with --wait=2m",
				fn.Key(), limit, progressOf(fn).text, stillServing(fn), away.ending(), d.shortName(fn.Key()))
		case <-time.After(lookAgain):
		}
		again, err := t.Get(ctx, applied.Key())
		switch {
		case err == nil:
			fn = again
			away.note(nil)
		case ctx.Err() != nil:
		case mayPass(err):
			away.note(err)
		default:
			return nil, err
		}
	}
}

// proof is what a status says of the start of a revision.
type proof int

const (
	proofUnknown proof = iota
	proofSeen
	proofFailed
	proofGone
)

// proofOf is what the status of a function says of the revision of one that was applied,
// and why. What is said of older generations says nothing, and so does a failure that was
// known when the function was applied: the next attempt may succeed.
func proofOf(fn, applied *v1alpha1.Function) (proof, metav1.Condition) {
	ready, stalled := conditionOf(fn, v1alpha1.ConditionRevisionReady), conditionOf(fn, v1alpha1.ConditionStalled)
	switch {
	case fn.UID != applied.UID:
		return proofGone, ready
	case fn.Status.ObservedGeneration < applied.Generation:
		return proofUnknown, ready
	case ready.Status == metav1.ConditionTrue && hasItsCalls(fn):
		return proofSeen, ready
	case stalled.Status == metav1.ConditionTrue && !known(applied, stalled):
		return proofFailed, stalled
	case ready.Status == metav1.ConditionFalse && !slices.Contains(passing, ready.Reason) && !known(applied, ready):
		return proofFailed, ready
	}
	return proofUnknown, ready
}

// known tells whether a function said the same of itself when it was applied.
func known(applied *v1alpha1.Function, c metav1.Condition) bool {
	was := conditionOf(applied, c.Type)
	return was.Status == c.Status && was.Reason == c.Reason && was.Message == c.Message && was.LastTransitionTime.Equal(&c.LastTransitionTime)
}

// hasItsCalls tells whether the calls go where the function wants them while its latest
// revision is proven: all to that, or the part of a step, or as spec.traffic says.
func hasItsCalls(fn *v1alpha1.Function) bool {
	status := &fn.Status
	if fn.Spec.Traffic != nil {
		return status.LatestReadyRevisionName == status.LatestCreatedRevisionName
	}
	return weightOf(fn, status.LatestCreatedRevisionName) > 0
}

func reasonOf(c metav1.Condition) string {
	text := cmp.Or(c.Reason, "nobody has looked at it yet; see that the controller of Windlass runs")
	if c.Message != "" {
		text += ": " + strings.TrimSpace(c.Message)
	}
	return printable(text)
}

// awaitGone waits until a function that is being deleted is gone. It tells when
// it has to wait at all, and what for.
func (d *remover) awaitGone(ctx context.Context, r registry, key invocation.FunctionKey, limit time.Duration) error {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	away := trouble{finder: d.finder}
	for told := ""; ; {
		fn, err := r.Get(ctx, key)
		switch {
		case isNotFound(err), err == nil && fn.DeletionTimestamp == nil:
			// One that is not being deleted was made again.
			return nil
		case err == nil && told == "":
			told = drainReason(fn)
			fmt.Fprintf(d.Err, "waiting for function %s: %s\n", key, told)
			away.note(nil)
		case err == nil:
			told = drainReason(fn)
			away.note(nil)
		case ctx.Err() != nil:
		case mayPass(err):
			away.note(err)
		default:
			return err
		}
		select {
		case <-ctx.Done():
			return timeoutf("function %s is still there after %s: %s\n%sit goes by itself: see windlass describe %s, or wait longer with --timeout",
				key, limit, cmp.Or(told, "its state is not known"), away.ending(), d.shortName(key))
		case <-time.After(lookAgain):
		}
	}
}

// drainReason says what keeps a function that is being deleted.
func drainReason(fn *v1alpha1.Function) string {
	if left := fn.Status.Instances.Desired; left > 0 {
		return fmt.Sprintf("%d of its instances have not ended", left)
	}
	if len(fn.Finalizers) > 0 {
		return "it has the finalizer " + strings.Join(fn.Finalizers, ", ") + ", which goes when its last instance has ended"
	}
	return "the cluster removes it"
}

// mayPass reports whether an error may be gone when one asks again: the API server restarts in an
// upgrade of the cluster, and so do the pods of Windlass in one of theirs.
func mayPass(err error) bool {
	return errors.Is(err, context.DeadlineExceeded) || kubeclient.Is(err, kubeclient.ReasonUnreachable) ||
		kubeclient.Is(err, kubeclient.ReasonRefused) || kubeclient.Is(err, kubeclient.ReasonNoPod)
}

// trouble is why a Windlass has not answered, for a command that asks again and again.
type trouble struct {
	*finder
	// last is the error of the last question; empty if that was answered.
	last string
}

// note takes the error of a question that is asked again, or nil. It prints an error once, not each time.
func (t *trouble) note(err error) {
	if err == nil {
		t.last = ""
		return
	}
	if text := err.Error(); text != t.last {
		t.last = text
		fmt.Fprintf(t.Err, "%s; asking again\n", t.rewriteCommands(printable(text)))
	}
}

// ending is a line about the trouble for an error that ends the command; empty without trouble.
func (t *trouble) ending() string {
	if t.last == "" {
		return ""
	}
	return "the last question was not answered: " + printable(t.last) + "\n"
}
