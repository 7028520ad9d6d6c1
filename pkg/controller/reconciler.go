package controller

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/record"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/windlass-dev/windlass/api/v1alpha1"
	"github.com/windlass-dev/windlass/api/wellknown"
	"github.com/windlass-dev/windlass/pkg/gateway/address"
	"github.com/windlass-dev/windlass/pkg/provisioner/podspec"
)

// Indexes of the cache.
const (
	indexPodFunction     = "function-uid"
	indexRevisionOwner   = "owner-uid"
	indexFunctionRuntime = "runtime"
	indexFunctionHost    = "host"
)

// reconciler carries out what plan decides, for one function at a time.
type reconciler struct {
	client client.Client
	// live reads without the cache.
	live   client.Reader
	facts  *factStore
	events record.EventRecorder
	hosts  address.Rules
	// classes say what functions get of what they ask for.
	classes classes
	metrics *metrics
	log     *slog.Logger

	mu      sync.Mutex
	written map[types.NamespacedName]*writes
}

// Reconcile plans for one function and does what the plan says.
func (r *reconciler) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	f := &v1alpha1.Function{}
	if err := r.client.Get(ctx, request.NamespacedName, f); err != nil {
		if apierrors.IsNotFound(err) {
			r.forgetWrites(request.NamespacedName)
			return reconcile.Result{}, nil
		}
		return reconcile.Result{}, fmt.Errorf("cannot read function %s: %w", f.Key(), err)
	}
	in, err := r.gather(ctx, f)
	if err != nil {
		return reconcile.Result{}, err
	}
	out := plan(in)
	if in.settling && len(in.units) < len(in.revisions) {
		out.sooner(r.facts.settlesIn() + time.Second)
	}
	err = r.applyOutcome(ctx, f, out)
	var failed *creationError
	if errors.As(err, &failed) {
		err = errors.Join(err, r.goOnWithout(ctx, in, failed))
	}
	if apierrors.IsConflict(err) {
		// Another client has changed it since it was read; the change will arrive.
		return reconcile.Result{RequeueAfter: minWritePause / 4}, nil
	}
	return reconcile.Result{RequeueAfter: out.again}, err
}

// gather gathers what plan needs.
func (r *reconciler) gather(ctx context.Context, f *v1alpha1.Function) (input, error) {
	in := input{now: time.Now(), function: f, hosts: r.hosts, classes: r.classes, written: r.writtenAt(client.ObjectKeyFromObject(f))}
	if f.Spec.Template.RuntimeRef.Name != "" {
		runtime := &v1alpha1.ClusterRuntime{}
		err := r.client.Get(ctx, types.NamespacedName{Name: string(f.Spec.Template.RuntimeRef.Name)}, runtime)
		switch {
		case err == nil:
			in.runtime = runtime
		case !apierrors.IsNotFound(err):
			return input{}, fmt.Errorf("cannot read ClusterRuntime %s: %w", f.Spec.Template.RuntimeRef.Name, err)
		default:
			var there v1alpha1.ClusterRuntimeList
			if err := r.client.List(ctx, &there); err != nil {
				return input{}, fmt.Errorf("cannot list the ClusterRuntimes: %w", err)
			}
			for i := range there.Items {
				in.runtimes = append(in.runtimes, v1alpha1.RuntimeName(there.Items[i].Name))
			}
		}
	}
	var err error
	if in.claims, err = r.claimsOn(ctx, f); err != nil {
		return input{}, err
	}
	var pods corev1.PodList
	err = r.client.List(ctx, &pods, client.InNamespace(f.Namespace), client.MatchingFields{indexPodFunction: string(f.UID)})
	if err != nil {
		return input{}, fmt.Errorf("cannot list the pods of function %s: %w", f.Key(), err)
	}
	for i := range pods.Items {
		p := &pods.Items[i]
		in.pods = append(in.pods, pod{
			name: p.Name, revision: types.UID(p.Labels[wellknown.LabelRevisionUID]), created: p.CreationTimestamp.Time,
			imageID: imageIDOf(p), ended: endedAt(p), deleting: !p.DeletionTimestamp.IsZero(),
		})
	}
	var revisions v1alpha1.FunctionRevisionList
	err = r.client.List(ctx, &revisions, client.InNamespace(f.Namespace), client.MatchingFields{indexRevisionOwner: string(f.UID)})
	if err != nil {
		return input{}, fmt.Errorf("cannot list the revisions of function %s: %w", f.Key(), err)
	}
	var budgets metav1.PartialObjectMetadataList
	budgets.SetGroupVersionKind(policyv1.SchemeGroupVersion.WithKind("PodDisruptionBudgetList"))
	if err := r.client.List(ctx, &budgets, client.InNamespace(f.Namespace), client.Limit(1)); err != nil {
		return input{}, fmt.Errorf("cannot list the disruption budgets beside function %s: %w", f.Key(), err)
	}
	in.budgeted = len(budgets.Items) > 0
	in.units = make(map[string]facts, len(revisions.Items))
	in.settling = r.facts.settlesIn() > 0
	for i := range revisions.Items {
		revision := &revisions.Items[i]
		in.revisions = append(in.revisions, revision)
		observed, events := r.facts.get(revision.UID)
		if observed != nil {
			in.units[revision.Name] = *observed
		}
		in.events = append(in.events, events...)
	}
	return in, nil
}

func (r *reconciler) applyOutcome(ctx context.Context, f *v1alpha1.Function, out outcome) error {
	for _, e := range out.events {
		r.emit(f, e)
	}
	var errs []error
	for _, p := range out.deletePods {
		errs = append(errs, r.deletePod(ctx, f, p))
	}
	if err := r.changeFinalizer(ctx, f, out.finalizer); err != nil {
		return errors.Join(append(errs, err)...)
	}
	return errors.Join(append(errs, r.applyRevisions(ctx, f, out))...)
}

// applyRevisions writes in an order in which each step follows from the previous ones: a new
// decision after some of them leads to the rest. Events about the status follow from its write only.
func (r *reconciler) applyRevisions(ctx context.Context, f *v1alpha1.Function, out outcome) error {
	if out.create != nil {
		return r.createRevision(ctx, f, out.create)
	}
	for _, revision := range out.revisions {
		if err := r.writeRevision(ctx, f, revision); err != nil {
			return err
		}
	}
	for _, revision := range out.scales {
		if err := r.writeScale(ctx, revision); err != nil {
			return err
		}
	}
	if out.status != nil {
		if err := r.writeStatus(ctx, f, *out.status); err != nil {
			return err
		}
	}
	// The next plan finds the status as it is now, and tells nothing: a removal may fail.
	r.recordWrite(f, func(w *writes) { w.pace = out.pace })
	for _, e := range out.changes {
		r.emit(f, e)
	}
	for _, revision := range out.remove {
		if err := r.removeRevision(ctx, f, revision); err != nil {
			return err
		}
	}
	return nil
}

func (r *reconciler) emit(f *v1alpha1.Function, e functionEvent) {
	kind := corev1.EventTypeNormal
	if e.warning {
		kind = corev1.EventTypeWarning
	}
	r.metrics.events.WithLabelValues(e.reason).Inc()
	r.events.Event(f, kind, e.reason, truncate(e.message))
}

func (r *reconciler) deletePod(ctx context.Context, f *v1alpha1.Function, p podDeletion) error {
	var options []client.DeleteOption
	if p.why == agentEnded {
		// Its own grace period is for calls that it still runs.
		options = append(options, client.GracePeriodSeconds(podspec.EndedGrace))
	}
	err := r.client.Delete(ctx, &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: f.Namespace, Name: p.name}}, options...)
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("cannot delete pod %s of function %s: %w", p.name, f.Key(), err)
	}
	r.metrics.podsDeleted.WithLabelValues(p.why).Inc()
	r.log.Info("deleted a pod", "namespace", f.Namespace, "function", f.Name, "pod", p.name, "reason", p.why)
	return nil
}

func (r *reconciler) changeFinalizer(ctx context.Context, f *v1alpha1.Function, change finalizerChange) error {
	before := f.DeepCopy()
	switch change {
	case finalizerAdd:
		controllerutil.AddFinalizer(f, wellknown.FinalizerDrain)
	case finalizerRemove:
		controllerutil.RemoveFinalizer(f, wellknown.FinalizerDrain)
	default:
		return nil
	}
	err := r.client.Patch(ctx, f, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{}))
	if apierrors.IsNotFound(err) {
		return nil
	}
	return err
}

func (r *reconciler) writeStatus(ctx context.Context, f *v1alpha1.Function, status v1alpha1.FunctionStatus) error {
	before := f.DeepCopy()
	f.Status = status
	// The patch holds only differences, because the spec may contain a lot of code.
	patch := client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})
	if err := r.client.Status().Patch(ctx, f, patch); err != nil {
		if apierrors.IsNotFound(err) {
			return nil
		}
		return err
	}
	r.metrics.statusWrites.Inc()
	r.recordWrite(f, func(w *writes) { w.function = time.Now() })
	return nil
}

// recordWrite remembers a write for a function.
func (r *reconciler) recordWrite(f *v1alpha1.Function, write func(*writes)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	key := client.ObjectKeyFromObject(f)
	if r.written[key] == nil {
		r.written[key] = &writes{revisions: make(map[string]time.Time)}
	}
	write(r.written[key])
}

func (r *reconciler) writtenAt(key types.NamespacedName) writes {
	r.mu.Lock()
	defer r.mu.Unlock()
	w := r.written[key]
	if w == nil {
		return writes{}
	}
	return writes{function: w.function, revisions: maps.Clone(w.revisions), pace: w.pace}
}

func (r *reconciler) forgetWrites(key types.NamespacedName) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.written, key)
}
