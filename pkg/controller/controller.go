package controller

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/record"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	ctrlconfig "sigs.k8s.io/controller-runtime/pkg/config"
	ctrlcontroller "sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	ctrllog "sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/windlass-dev/windlass/api/v1alpha1"
	"github.com/windlass-dev/windlass/api/wellknown"
)

// requestRate is the default bound of requests to the API server per second. The default of
// client-go would be too low for the statuses of a few dozen busy functions.
const requestRate = 100

// concurrency is how many functions are looked after at a time.
const concurrency = 4

// A function that could not be looked after is retried between minRetryDelay and maxRetryDelay
// later. Nothing announces that a quota was raised or that a webhook is back.
const (
	minRetryDelay = 5 * time.Millisecond
	maxRetryDelay = 30 * time.Second
)

// Controller looks after the Functions of a cluster.
type Controller struct {
	manager     manager.Manager
	broadcaster record.EventBroadcaster
	synced      atomic.Bool
}

// New makes a Controller, which does nothing before Run. It asks the API server for its kinds,
// and fails if the CRDs are not installed.
func New(config Config, deps Deps) (*Controller, error) {
	if err := config.Validate(); err != nil {
		return nil, err
	}
	if deps.REST.QPS == 0 {
		deps.REST = rest.CopyConfig(deps.REST)
		deps.REST.QPS, deps.REST.Burst = requestRate, 2*requestRate
	}
	mgr, err := newManager(config, deps)
	if err != nil {
		return nil, fmt.Errorf("controller: %w", err)
	}
	c := &Controller{manager: mgr}
	if err := c.setUp(config, deps); err != nil {
		return nil, fmt.Errorf("controller: %w", err)
	}
	return c, nil
}

func newManager(config Config, deps Deps) (manager.Manager, error) {
	scheme, err := Scheme()
	if err != nil {
		return nil, err
	}
	logger := logr.FromSlogHandler(deps.Log.Handler())
	ctrllog.SetLogger(logger)
	skip := true
	return manager.New(deps.REST, manager.Options{
		Scheme: scheme,
		Logger: logger,
		Cache:  config.cacheOptions(),
		// The program has a server of its own for both.
		Metrics:                       metricsserver.Options{BindAddress: "0"},
		HealthProbeBindAddress:        "0",
		LeaderElection:                config.LeaderElection,
		LeaderElectionID:              LeaseName,
		LeaderElectionNamespace:       config.Namespace,
		LeaderElectionReleaseOnCancel: true,
		Controller:                    ctrlconfig.Controller{SkipNameValidation: &skip},
	})
}

// setUp registers everything with the manager.
func (c *Controller) setUp(config Config, deps Deps) error {
	metrics, err := newMetrics(deps.Registerer)
	if err != nil {
		return err
	}
	events, err := typedcorev1.NewForConfig(deps.REST)
	if err != nil {
		return err
	}
	c.broadcaster = record.NewBroadcaster()
	mgr, ofFunctions, ofRuntimes := c.manager, &changeSource{}, &changeSource{}
	pools := newPoolStore(func(name string) { ofRuntimes.enqueue(types.NamespacedName{Name: name}) })
	functions := &reconciler{
		client: mgr.GetClient(), live: mgr.GetAPIReader(), facts: newFactStore(ofFunctions.enqueue, pools), hosts: config.Hosts, classes: classes{ordered: config.NodeAgents, latencyCritical: config.LatencyCritical},
		events:  c.broadcaster.NewRecorder(mgr.GetScheme(), corev1.EventSource{Component: "windlass-controller"}),
		metrics: metrics, log: deps.Log, written: make(map[types.NamespacedName]*writes),
	}
	schedulers := deps.Schedulers
	if schedulers == nil {
		schedulers = newEndpoints(mgr.GetCache(), config.Namespace, config.SchedulerService)
	}
	follower := &follower{schedulers: schedulers, dial: deps.Dial, facts: functions.facts, metrics: metrics, log: deps.Log}
	return errors.Join(
		mgr.Add(manager.RunnableFunc(func(ctx context.Context) error {
			c.broadcaster.StartRecordingToSink(&typedcorev1.EventSinkImpl{Interface: events.Events("")})
			<-ctx.Done()
			return nil
		})),
		mgr.Add(manager.RunnableFunc(follower.run)),
		mgr.Add(onEveryReplica(func(ctx context.Context) error {
			c.synced.Store(mgr.GetCache().WaitForCacheSync(ctx))
			return nil
		})),
		setUpFunctions(mgr, functions, ofFunctions),
		setUpSpares(mgr, &spareReconciler{
			client: mgr.GetClient(), namespace: config.Namespace, service: config.SchedulerService, metrics: metrics, log: deps.Log,
		}),
		setUpPolicies(mgr, &policyReconciler{client: mgr.GetClient(), live: mgr.GetAPIReader(), spec: policySpec(config.Namespace, config.Egress), log: deps.Log}),
		setUpRuntimes(mgr, config.Runtimes, deps.Log),
		setUpRuntimeStatus(mgr, &runtimeStatusReconciler{
			client: mgr.GetClient(), facts: functions.facts, metrics: metrics, written: make(map[string]runtimeWrites),
		}, ofRuntimes),
	)
}

// Run works until ctx ends, and then returns nil when everything that it started has ended. It
// fails when it loses its Lease; the program should then exit and restart.
func (c *Controller) Run(ctx context.Context) error {
	defer c.broadcaster.Shutdown()
	if err := c.manager.Start(ctx); err != nil {
		return fmt.Errorf("controller: %w", err)
	}
	return nil
}

// Ready says whether the controller sees the cluster, as the leader or not.
func (c *Controller) Ready() bool { return c.synced.Load() }

// onEveryReplica is a Runnable that needs no Lease.
type onEveryReplica func(context.Context) error

func (e onEveryReplica) Start(ctx context.Context) error { return e(ctx) }
func (onEveryReplica) NeedLeaderElection() bool          { return false }

func setUpFunctions(mgr manager.Manager, r *reconciler, pokes *changeSource) error {
	indexer, ctx := mgr.GetFieldIndexer(), context.Background()
	byFunction := func(o client.Object) []string { return []string{o.GetLabels()[wellknown.LabelFunctionUID]} }
	byRuntime := func(o client.Object) []string {
		return []string{string(o.(*v1alpha1.Function).Spec.Template.RuntimeRef.Name)}
	}
	if err := indexer.IndexField(ctx, &corev1.Pod{}, indexPodFunction, byFunction); err != nil {
		return err
	}
	if err := indexer.IndexField(ctx, &v1alpha1.Function{}, indexFunctionRuntime, byRuntime); err != nil {
		return err
	}
	if err := indexer.IndexField(ctx, &v1alpha1.Function{}, indexFunctionHost, requestedHosts); err != nil {
		return err
	}
	if err := indexer.IndexField(ctx, &v1alpha1.FunctionRevision{}, indexRevisionOwner, ownerOf); err != nil {
		return err
	}
	notStatus := builder.WithPredicates(predicate.GenerationChangedPredicate{})
	return builder.ControllerManagedBy(mgr).
		Named("functions").
		For(&v1alpha1.Function{}).
		Owns(&v1alpha1.FunctionRevision{}).
		Watches(&corev1.Pod{}, handler.EnqueueRequestsFromMapFunc(functionOfPod)).
		Watches(&v1alpha1.Function{}, handler.EnqueueRequestsFromMapFunc(functionsOfSameHosts(mgr.GetClient())), notStatus).
		Watches(&v1alpha1.ClusterRuntime{}, handler.EnqueueRequestsFromMapFunc(functionsOfRuntime(mgr.GetClient())), notStatus).
		WatchesMetadata(&policyv1.PodDisruptionBudget{}, handler.EnqueueRequestsFromMapFunc(functionsBeside(mgr.GetClient())), createdOrDeleted).
		WatchesRawSource(source.Func(pokes.start)).
		WithOptions(ctrlcontroller.Options{
			MaxConcurrentReconciles: concurrency,
			RateLimiter:             workqueue.NewTypedItemExponentialFailureRateLimiter[reconcile.Request](minRetryDelay, maxRetryDelay),
		}).
		Complete(r)
}

// ownerOf is the UID of the object that a revision belongs to.
func ownerOf(o client.Object) []string {
	owner := metav1.GetControllerOf(o)
	if owner == nil {
		return nil
	}
	return []string{string(owner.UID)}
}

func functionOfPod(_ context.Context, o client.Object) []reconcile.Request {
	name := o.GetLabels()[wellknown.LabelFunction]
	if name == "" {
		return nil // a spare instance
	}
	return []reconcile.Request{{NamespacedName: types.NamespacedName{Namespace: o.GetNamespace(), Name: name}}}
}

func functionsOfRuntime(reader client.Reader) handler.MapFunc {
	return func(ctx context.Context, o client.Object) []reconcile.Request {
		return requestsFor(ctx, reader, client.MatchingFields{indexFunctionRuntime: o.GetName()})
	}
}

// functionsBeside are the functions in the namespace of an object.
func functionsBeside(reader client.Reader) handler.MapFunc {
	return func(ctx context.Context, o client.Object) []reconcile.Request {
		return requestsFor(ctx, reader, client.InNamespace(o.GetNamespace()))
	}
}

func requestsFor(ctx context.Context, reader client.Reader, which client.ListOption) []reconcile.Request {
	var functions v1alpha1.FunctionList
	if err := reader.List(ctx, &functions, which); err != nil {
		return nil
	}
	requests := make([]reconcile.Request, 0, len(functions.Items))
	for i := range functions.Items {
		requests = append(requests, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(&functions.Items[i])})
	}
	return requests
}

// createdOrDeleted ignores updates.
var createdOrDeleted = builder.WithPredicates(predicate.Funcs{UpdateFunc: func(event.UpdateEvent) bool { return false }})

func setUpPolicies(mgr manager.Manager, r *policyReconciler) error {
	namespaceOf := handler.EnqueueRequestsFromMapFunc(func(_ context.Context, o client.Object) []reconcile.Request {
		return []reconcile.Request{{NamespacedName: types.NamespacedName{Namespace: o.GetNamespace(), Name: PolicyName}}}
	})
	return builder.ControllerManagedBy(mgr).
		Named("network-policies").
		Watches(&v1alpha1.Function{}, namespaceOf, createdOrDeleted).
		Watches(&networkingv1.NetworkPolicy{}, namespaceOf).
		Complete(r)
}

func setUpRuntimes(mgr manager.Manager, runtimes []v1alpha1.ClusterRuntime, log *slog.Logger) error {
	r := &runtimeReconciler{client: mgr.GetClient(), runtimes: make(map[string]v1alpha1.ClusterRuntime), log: log}
	for _, rt := range runtimes {
		r.runtimes[rt.Name] = rt
	}
	deleted := builder.WithPredicates(predicate.Funcs{
		CreateFunc: func(event.CreateEvent) bool { return false },
		UpdateFunc: func(event.UpdateEvent) bool { return false },
	})
	all := source.Func(func(_ context.Context, queue workqueue.TypedRateLimitingInterface[reconcile.Request]) error {
		for name := range r.runtimes {
			queue.Add(reconcile.Request{NamespacedName: types.NamespacedName{Name: name}})
		}
		return nil
	})
	return builder.ControllerManagedBy(mgr).
		Named("runtimes").
		Watches(&v1alpha1.ClusterRuntime{}, &handler.EnqueueRequestForObject{}, deleted).
		WatchesRawSource(all).
		Complete(r)
}

func setUpRuntimeStatus(mgr manager.Manager, r *runtimeStatusReconciler, pokes *changeSource) error {
	return builder.ControllerManagedBy(mgr).
		Named("runtime-status").
		For(&v1alpha1.ClusterRuntime{}).
		WatchesRawSource(source.Func(pokes.start)).
		Complete(r)
}

// changeSource hands the names of functions, or of ClusterRuntimes, to their controller's queue, which holds
// each at most once.
type changeSource struct {
	mu    sync.Mutex
	queue workqueue.TypedRateLimitingInterface[reconcile.Request]
}

func (p *changeSource) start(_ context.Context, queue workqueue.TypedRateLimitingInterface[reconcile.Request]) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.queue = queue
	return nil
}

// enqueue has no effect before the start, when every function is reconciled anyway.
func (p *changeSource) enqueue(key types.NamespacedName) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.queue != nil {
		p.queue.Add(reconcile.Request{NamespacedName: key})
	}
}
