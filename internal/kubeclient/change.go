package kubeclient

import (
	"context"

	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/windlass-dev/windlass/api/v1alpha1"
	"github.com/windlass-dev/windlass/pkg/invocation"
)

// Change changes fields of a function that exists, and leaves those alone that edit
// does. It calls edit again if somebody else was faster. What the function becomes is
// checked as Prepare does before it is sent.
func (f *functions) Change(ctx context.Context, key invocation.FunctionKey, edit func(*v1alpha1.Function) error, options Options) (Applied, error) {
	var result Applied
	err := retry.RetryOnConflict(retry.DefaultBackoff, func() error {
		before := &v1alpha1.Function{}
		if err := f.kube.Get(ctx, client.ObjectKey{Namespace: key.Namespace, Name: key.Name}, before); err != nil {
			return f.explain(key, err)
		}
		if err := refuseDeleting(before); err != nil {
			return err
		}
		after := before.DeepCopy()
		if err := edit(after); err != nil {
			return err
		}
		if err := validate(after); err != nil {
			return err
		}
		patch := []client.PatchOption{FieldManager}
		if options.DryRun {
			patch = append(patch, client.DryRunAll)
		}
		if err := f.kube.Patch(ctx, after, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{}), patch...); err != nil {
			return f.explain(key, err)
		}
		tidy(before)
		tidy(after)
		result = applied(before, after)
		return nil
	})
	return result, err
}
