package kubeclient

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/windlass-dev/windlass/api/v1alpha1"
	"github.com/windlass-dev/windlass/api/wellknown"
	"github.com/windlass-dev/windlass/pkg/invocation"
)

// FieldManager owns the fields that the command has applied.
const FieldManager = client.FieldOwner("windlass-cli")

// codeComponent marks a ConfigMap as made here.
const (
	labelComponent = "app.kubernetes.io/component"
	codeComponent  = "code"
)

// Result says what Apply did.
type Result string

const (
	// Created says that the function is new.
	Created Result = "created"
	// Configured says that the function was changed.
	Configured Result = "configured"
	// Unchanged says that the function was so already.
	Unchanged Result = "unchanged"
)

// Applied is the result of applying a Function.
type Applied struct {
	Result   Result
	Function *v1alpha1.Function
	// Before is the function as it was; nil if it is new.
	Before *v1alpha1.Function
	// Note says what of an earlier change could not be removed, if anything.
	Note string
}

// Options of changes.
type Options struct {
	// Force takes over fields that others have set.
	Force bool
	// DryRun makes the cluster check the change without making it.
	DryRun bool
}

// Change is a Function that can be applied in a cluster.
type Change struct {
	function *v1alpha1.Function
	// files are the code, if it goes into a ConfigMap.
	files map[string]string
}

// Prepare reads the code of a Function and says, as an Error with
// ReasonInvalid, everything that is wrong with it before anything is sent. The
// Function has a namespace and no defaults, and is not changed.
func Prepare(fn *v1alpha1.Function) (*Change, error) {
	change := &Change{function: fn.DeepCopy()}
	spec := &change.function.Spec
	if spec.Template.RuntimeRef.Name == "" && spec.Template.Image == "" {
		// A program without an image is the error. Where it starts, which
		// reading its manifest has added, is none.
		spec.Template.Code = nil
	}
	if spec.Template.RuntimeRef.Name != "" && spec.Template.Code != nil && spec.Template.Code.Path != "" && spec.Template.Code.Inline == "" && spec.Template.Code.ConfigMapRef.Name == "" {
		inline, files, err := pack(spec)
		if err != nil {
			return nil, &Error{Reason: ReasonInvalid, Message: fmt.Sprintf("function %s: %v", fn.Key(), err), Err: err}
		}
		spec.Template.Code = &v1alpha1.Code{Inline: inline}
		if files != nil {
			change.files = files
			spec.Template.Code.ConfigMapRef.Name = codeName(fn.Name, files)
		}
	}
	return change, validate(change.function)
}

func validate(fn *v1alpha1.Function) error {
	defaulted := fn.DeepCopy()
	v1alpha1.Default(defaulted)
	problems := append(v1alpha1.Validate(defaulted), v1alpha1.ValidateCluster(defaulted)...)
	if len(problems) == 0 {
		return nil
	}
	var lines []string
	for _, p := range problems {
		lines = append(lines, fmt.Sprintf("function %s: %v", fn.Key(), p))
	}
	return &Error{Reason: ReasonInvalid, Message: strings.Join(lines, "\n"), Err: problems.ToAggregate()}
}

// Apply makes the function exist as the change says. Without Force, fields that others
// have set are an Error with ReasonConflict.
func (f *functions) Apply(ctx context.Context, change *Change, options Options) (Applied, error) {
	fn := change.function
	before, err := f.Get(ctx, fn.Key())
	if err != nil && !Is(err, ReasonNotFound) {
		return Applied{}, err
	}
	if err := refuseDeleting(before); err != nil {
		return Applied{}, err
	}
	if options.DryRun {
		after, err := f.applyFunction(ctx, fn, options)
		return applied(before, after), err
	}
	if err := f.applyCode(ctx, change, before); err != nil {
		return Applied{}, err
	}
	after, err := f.applyFunction(ctx, fn, options)
	if err != nil {
		return Applied{}, f.dropCode(ctx, change, before, err)
	}
	if before == nil {
		return applied(before, after), f.ownCode(ctx, change, after)
	}
	result := applied(before, after)
	if err := f.removeOldCode(ctx, before, after); err != nil {
		result.Note = err.Error()
	}
	return result, nil
}

// refuseDeleting refuses to change a function that is being deleted.
func refuseDeleting(fn *v1alpha1.Function) error {
	if fn == nil || fn.DeletionTimestamp == nil {
		return nil
	}
	return &Error{Reason: ReasonConflict, Message: fmt.Sprintf(
		"function %s is being deleted: wait until it is gone, windlass delete %s waits for that, and deploy it again", fn.Key(), fn.Key())}
}

func applied(before, after *v1alpha1.Function) Applied {
	return Applied{Result: compare(before, after), Function: after, Before: before}
}

func compare(before, after *v1alpha1.Function) Result {
	if before == nil || after == nil {
		return Created
	}
	if equality.Semantic.DeepEqual(before.Spec, after.Spec) && maps.Equal(before.Labels, after.Labels) && maps.Equal(before.Annotations, after.Annotations) {
		return Unchanged
	}
	return Configured
}

func (f *functions) applyFunction(ctx context.Context, fn *v1alpha1.Function, options Options) (*v1alpha1.Function, error) {
	object, err := applyConfiguration(fn)
	if err != nil {
		return nil, err
	}
	err = f.patch(ctx, object, options)
	if !options.Force && onlyOurs(err) {
		// This command's own verbs have changed single fields since.
		options.Force = true
		err = f.patch(ctx, object, options)
	}
	if err != nil {
		return nil, f.explain(fn.Key(), err)
	}
	after := &v1alpha1.Function{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, after); err != nil {
		return nil, fmt.Errorf("the cluster's answer about function %s cannot be read: %w: check that the cluster's Windlass and this command have the same version", fn.Key(), err)
	}
	tidy(after)
	return after, nil
}

func (f *functions) patch(ctx context.Context, object *unstructured.Unstructured, options Options) error {
	apply := []client.ApplyOption{FieldManager}
	if options.Force {
		apply = append(apply, client.ForceOwnership)
	}
	if options.DryRun {
		apply = append(apply, client.DryRunAll)
	}
	return f.kube.Apply(ctx, client.ApplyConfigurationFromUnstructured(object), apply...)
}

// applyConfiguration has the fields that the author of a Function has written, and no others.
func applyConfiguration(fn *v1alpha1.Function) (*unstructured.Unstructured, error) {
	fn = fn.DeepCopy()
	// It is in manifests that were read from a local Windlass.
	delete(fn.Annotations, v1alpha1.AnnotationCodeStamp)
	text, err := json.Marshal(fn)
	if err != nil {
		return nil, fmt.Errorf("cannot write function %s: %w", fn.Key(), err)
	}
	object := &unstructured.Unstructured{}
	if err := json.Unmarshal(text, &object.Object); err != nil {
		return nil, fmt.Errorf("cannot write function %s: %w", fn.Key(), err)
	}
	object.SetGroupVersionKind(v1alpha1.GroupVersion.WithKind(v1alpha1.KindFunction))
	delete(object.Object, "status")
	// What the server writes is in manifests that were read from a cluster.
	for _, field := range []string{"creationTimestamp", "deletionTimestamp", "generation", "managedFields", "resourceVersion", "selfLink", "uid"} {
		unstructured.RemoveNestedField(object.Object, "metadata", field)
	}
	return object, nil
}

// applyCode makes the ConfigMap of a change exist, as the owner's if there is one.
func (f *functions) applyCode(ctx context.Context, change *Change, owner *v1alpha1.Function) error {
	if change.files == nil {
		return nil
	}
	key := change.function.Key()
	data := map[string]any{}
	for name, content := range change.files {
		data[name] = content
	}
	metadata := map[string]any{
		"namespace": key.Namespace, "name": change.function.Spec.Template.Code.ConfigMapRef.Name,
		"labels": map[string]any{wellknown.LabelManagedBy: wellknown.ManagedBy, labelComponent: codeComponent, wellknown.LabelFunction: key.Name},
	}
	if owner != nil {
		metadata["ownerReferences"] = []any{map[string]any{"apiVersion": v1alpha1.APIVersion, "kind": v1alpha1.KindFunction,
			"name": owner.Name, "uid": string(owner.UID)}}
	}
	object := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "immutable": true, "data": data,
	}}
	if err := f.patch(ctx, object, Options{Force: true}); err != nil {
		return f.explainCode(key, err)
	}
	return nil
}

// ownCode makes a new function the owner of its ConfigMap, which was there before it.
func (f *functions) ownCode(ctx context.Context, change *Change, owner *v1alpha1.Function) error {
	if err := f.applyCode(ctx, change, owner); err != nil {
		return fmt.Errorf("function %s was created, but its code would stay when it is deleted: %w\ndeploy it again", owner.Key(), err)
	}
	return nil
}

// dropCode removes the ConfigMap of a new function that was refused: it has no
// owner that would take it along. After any other error the function may exist.
func (f *functions) dropCode(ctx context.Context, change *Change, before *v1alpha1.Function, err error) error {
	if change.files == nil || before != nil {
		return err
	}
	if !isRefusal(err) {
		return fmt.Errorf("%w\nthe function may have been stored: deploy it again", err)
	}
	if _, getErr := f.Get(ctx, change.function.Key()); !Is(getErr, ReasonNotFound) {
		// Somebody else has made it meanwhile, perhaps with the same code.
		return err
	}
	object := &corev1.ConfigMap{}
	object.Namespace, object.Name = change.function.Namespace, change.function.Spec.Template.Code.ConfigMapRef.Name
	if dropErr := f.kube.Delete(ctx, object); client.IgnoreNotFound(dropErr) != nil {
		return fmt.Errorf("%w\nthe ConfigMap %s is left: remove it with kubectl delete configmap -n %s %s", err, object.Name, object.Namespace, object.Name)
	}
	return err
}

// codeGrace is how old a ConfigMap with code is before a deploy may remove it: another deploy of
// the same function makes its ConfigMap before the function refers to it.
const codeGrace = time.Hour

// removeOldCode removes ConfigMaps with code that no revision uses. That of the function
// as it was before stays in any case: the controller may not have made its revision yet.
func (f *functions) removeOldCode(ctx context.Context, before, after *v1alpha1.Function) error {
	kept := []string{configMapOf(&before.Spec.Template), configMapOf(&after.Spec.Template)}
	if kept[0] == kept[1] || !slices.ContainsFunc(kept, func(name string) bool { return strings.HasPrefix(name, codePrefix(after.Name)) }) {
		return nil
	}
	revisions, err := f.Revisions(ctx, after)
	if err != nil {
		return fmt.Errorf("old code of function %s is left: %w", after.Key(), err)
	}
	for i := range revisions {
		kept = append(kept, configMapOf(&revisions[i].Spec.Template))
	}
	var list corev1.ConfigMapList
	err = f.kube.List(ctx, &list, client.InNamespace(after.Namespace), client.MatchingLabels{
		wellknown.LabelManagedBy: wellknown.ManagedBy, labelComponent: codeComponent, wellknown.LabelFunction: after.Name,
	})
	if err != nil {
		return fmt.Errorf("old code of function %s is left: %w", after.Key(), f.explain(after.Key(), err))
	}
	for i := range list.Items {
		if slices.Contains(kept, list.Items[i].Name) || time.Since(list.Items[i].CreationTimestamp.Time) < f.codeGrace {
			continue
		}
		if err := f.kube.Delete(ctx, &list.Items[i]); client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("the ConfigMap %s with old code of function %s is left: %w", list.Items[i].Name, after.Key(), f.explain(after.Key(), err))
		}
	}
	return nil
}

func configMapOf(t *v1alpha1.FunctionTemplate) string {
	if t.Code == nil {
		return ""
	}
	return t.Code.ConfigMapRef.Name
}

// explainCode is explain for a function's ConfigMap.
func (f *functions) explainCode(key invocation.FunctionKey, err error) error {
	return fmt.Errorf("the code of function %s: %w", key, f.explain(key, err))
}

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
