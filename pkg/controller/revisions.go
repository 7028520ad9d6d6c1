package controller

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/windlass-dev/windlass/api/v1alpha1"
	"github.com/windlass-dev/windlass/pkg/rollout"
)

// createRevision creates a revision. If the function has changed meanwhile, its event triggers
// another reconciliation.
func (r *reconciler) createRevision(ctx context.Context, f *v1alpha1.Function, wanted *v1alpha1.FunctionRevision) error {
	live := &v1alpha1.Function{}
	if err := r.live.Get(ctx, client.ObjectKeyFromObject(f), live); err != nil {
		return client.IgnoreNotFound(err)
	}
	if live.UID != f.UID || live.Generation != wanted.Spec.Number {
		return nil
	}
	// The cache holds no code.
	wanted = wanted.DeepCopy()
	wanted.Spec.Template.Code = live.Spec.Template.Code
	err := r.client.Create(ctx, wanted)
	switch {
	case err == nil:
		r.log.Info("created a revision", "namespace", f.Namespace, "function", f.Name, "revision", wanted.Name)
		return nil
	case apierrors.IsAlreadyExists(err):
		return r.resolveConflict(ctx, f, wanted)
	default:
		return creationFailure(wanted.Name, err)
	}
}

// creationError says why a revision could not be created, for the function's status.
type creationError struct{ rollout.Failure }

func (e *creationError) Error() string { return e.Message }

// refusedRevision says that people have to do something before a revision can be created.
func refusedRevision(format string, args ...any) error {
	return &creationError{rollout.Failure{Reason: v1alpha1.ReasonRevisionRefused, Message: fmt.Sprintf(format, args...)}}
}

// creationFailure is the error of a request to create a revision. It is a creationError if the
// API server has answered: then it can take the function's status too.
func creationFailure(revision string, err error) error {
	var answer apierrors.APIStatus
	if !errors.As(err, &answer) || apierrors.IsConflict(err) {
		return fmt.Errorf("cannot create revision %s: %w", revision, err)
	}
	if code := answer.Status().Code; code >= http.StatusInternalServerError || code == http.StatusTooManyRequests {
		return &creationError{rollout.Failure{Reason: v1alpha1.ReasonPending, Message: fmt.Sprintf("cannot create FunctionRevision %s yet: %v", revision, err)}}
	}
	return refusedRevision("the API server refuses to create FunctionRevision %s: %v", revision, err)
}

// goOnWithout does what does not depend on the revision that could not be created, and says in
// the status why it could not.
func (r *reconciler) goOnWithout(ctx context.Context, in input, failed *creationError) error {
	in.notCreated = &failed.Failure
	out := outcome{pace: in.written.pace}
	planRollout(in, &out)
	return r.applyOutcome(ctx, in.function, out)
}

// resolveConflict looks at the existing object with the name of a new revision. If it is this
// revision, the cache was just behind. If it belongs to an older function of the same name,
// the garbage collector has yet to delete it; its deletion triggers another reconciliation.
func (r *reconciler) resolveConflict(ctx context.Context, f *v1alpha1.Function, wanted *v1alpha1.FunctionRevision) error {
	found := &v1alpha1.FunctionRevision{}
	if err := r.live.Get(ctx, client.ObjectKeyFromObject(wanted), found); err != nil {
		return client.IgnoreNotFound(err)
	}
	switch {
	case found.Of(f) && v1alpha1.RevisionOf(&found.Spec.Template) == v1alpha1.RevisionOf(&wanted.Spec.Template):
		return nil
	case !found.Of(f) && found.Spec.FunctionName == f.Name:
		return r.removeRevision(ctx, f, found)
	case found.Of(f):
		return refusedRevision("FunctionRevision %s has been created from another template: "+
			"change the function's spec, so that its next revision has another name", wanted.Name)
	default:
		return refusedRevision("there is a FunctionRevision %s that does not belong to this function: delete it", wanted.Name)
	}
}

func (r *reconciler) removeRevision(ctx context.Context, f *v1alpha1.Function, revision *v1alpha1.FunctionRevision) error {
	err := r.client.Delete(ctx, revision.DeepCopy(), client.Preconditions{UID: &revision.UID})
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("cannot remove revision %s of function %s: %w", revision.Name, f.Key(), err)
	}
	r.recordWrite(f, func(w *writes) { delete(w.revisions, revision.Name) })
	r.log.Info("removed a revision", "namespace", f.Namespace, "function", f.Name, "revision", revision.Name)
	return nil
}

// writeRevision writes a revision's status.
func (r *reconciler) writeRevision(ctx context.Context, f *v1alpha1.Function, revision *v1alpha1.FunctionRevision) error {
	before := revision.DeepCopy()
	before.Status = v1alpha1.FunctionRevisionStatus{}
	patch := client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})
	if err := r.client.Status().Patch(ctx, revision, patch); err != nil {
		return client.IgnoreNotFound(err)
	}
	r.metrics.statusWrites.Inc()
	r.recordWrite(f, func(w *writes) { w.revisions[revision.Name] = time.Now() })
	return nil
}

// writeScale writes how many instances of a revision are wanted, for readers of its scale. Its
// status may have been written just before; only the controller writes either.
func (r *reconciler) writeScale(ctx context.Context, revision *v1alpha1.FunctionRevision) error {
	before := revision.DeepCopy()
	before.Spec.Instances = -1
	if err := r.client.Patch(ctx, revision, client.MergeFrom(before)); err != nil {
		return client.IgnoreNotFound(err)
	}
	r.metrics.statusWrites.Inc()
	return nil
}
