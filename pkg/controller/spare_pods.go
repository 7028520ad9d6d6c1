package controller

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/windlass-dev/windlass/api/v1alpha1"
	"github.com/windlass-dev/windlass/api/wellknown"
	"github.com/windlass-dev/windlass/pkg/provisioner/podspec"
	"github.com/windlass-dev/windlass/pkg/provisioner/warmpool"
)

// abandonedAge is how old a spare instance must be to be deleted because its scheduler
// is not there: that of a new one may not have been seen yet.
const abandonedAge = time.Minute

// sparePod is what matters of the pod of a spare instance.
type sparePod struct {
	pod
	scheduler string
	// started says that its agent runs, or did.
	started bool
}

// spareDeletion says why a spare instance must be deleted now; empty if it need not be, and
// then when to look again. An empty set of schedulers means that they are unknown.
func spareDeletion(p sparePod, schedulers map[string]bool, now time.Time) (why string, again time.Duration) {
	if p.deleting {
		return "", 0
	}
	if !p.ended.IsZero() {
		if wait := endedGrace - now.Sub(p.ended); wait > 0 {
			return "", wait
		}
		return agentEnded, 0
	}
	if wait := abandonedAge - now.Sub(p.created); wait > 0 {
		return "", wait
	}
	if len(schedulers) > 0 && !schedulers[p.scheduler] {
		return schedulerGone, 0
	}
	if p.started {
		return "", abandonedAge
	}
	if wait := warmpool.LeaveBy(p.created, v1alpha1.DefaultStartupTimeout).Sub(now); wait > 0 {
		return "", min(wait, abandonedAge)
	}
	return neverStarted, 0
}

// hasStarted reports whether a pod's agent runs, or did.
func hasStarted(p *corev1.Pod) bool {
	return slices.ContainsFunc(p.Status.ContainerStatuses, func(c corev1.ContainerStatus) bool {
		return c.Name == agentContainer && (c.State.Running != nil || c.State.Terminated != nil)
	})
}

// spareReconciler deletes the pods of spare instances that no scheduler manages: those whose
// agent has ended or has not begun to run for long, and those whose scheduler no longer
// exists. It ignores those that were assigned to a function.
type spareReconciler struct {
	client client.Client
	// namespace and service are the schedulers'.
	namespace, service string
	metrics            *metrics
	log                *slog.Logger
}

func setUpSpares(mgr manager.Manager, r *spareReconciler) error {
	spares := builder.WithPredicates(predicate.NewPredicateFuncs(isSpare))
	return builder.ControllerManagedBy(mgr).
		Named("spares").
		Watches(&corev1.Pod{}, &handler.EnqueueRequestForObject{}, spares).
		Complete(r)
}

func isSpare(o client.Object) bool {
	return o.GetLabels()[wellknown.LabelComponent] == wellknown.ComponentSpare
}

// Reconcile looks at one pod.
func (r *spareReconciler) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	p := &corev1.Pod{}
	if err := r.client.Get(ctx, request.NamespacedName, p); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	if !isSpare(p) {
		return reconcile.Result{}, nil
	}
	schedulers, err := r.schedulers(ctx)
	if err != nil {
		return reconcile.Result{}, err
	}
	found := sparePod{scheduler: p.Labels[wellknown.LabelScheduler], started: hasStarted(p)}
	found.created, found.ended, found.deleting = p.CreationTimestamp.Time, endedAt(p), !p.DeletionTimestamp.IsZero()
	why, again := spareDeletion(found, schedulers, time.Now())
	if why == "" {
		return reconcile.Result{RequeueAfter: again}, nil
	}
	// A function may be taking it right now: then it has changed since it was read.
	unchanged := client.Preconditions{UID: &p.UID, ResourceVersion: &p.ResourceVersion}
	err = r.client.Delete(ctx, p, unchanged, client.GracePeriodSeconds(podspec.EndedGrace))
	if apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
		return reconcile.Result{}, nil
	}
	if err != nil {
		return reconcile.Result{}, fmt.Errorf("cannot delete the spare pod %s: %w", request.NamespacedName, err)
	}
	r.metrics.podsDeleted.WithLabelValues(why).Inc()
	r.log.Info("deleted a spare pod", "namespace", p.Namespace, "pod", p.Name, "reason", why)
	return reconcile.Result{}, nil
}

// schedulers are the names of all existing scheduler pods, ready or not; none if one of them
// cannot be identified.
func (r *spareReconciler) schedulers(ctx context.Context) (map[string]bool, error) {
	var list discoveryv1.EndpointSliceList
	err := r.client.List(ctx, &list, client.InNamespace(r.namespace), client.MatchingLabels{discoveryv1.LabelServiceName: r.service})
	if err != nil {
		return nil, fmt.Errorf("cannot list the EndpointSlices of Service %s/%s: %w", r.namespace, r.service, err)
	}
	names := make(map[string]bool)
	for _, slice := range list.Items {
		for _, endpoint := range slice.Endpoints {
			if endpoint.TargetRef == nil {
				return nil, nil
			}
			names[endpoint.TargetRef.Name] = true
		}
	}
	return names, nil
}
