package kube

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/windlass-dev/windlass/api/v1alpha1"
	"github.com/windlass-dev/windlass/pkg/catalog"
	"github.com/windlass-dev/windlass/pkg/invocation"
)

// Config of a Source.
type Config struct {
	// Runtimes says to read ClusterRuntimes and the labels of namespaces as well. Programs
	// that only list Functions do not need them.
	Runtimes bool
	// Code says to keep inline code. Programs that start no instances do not need it.
	Code bool
}

// Deps of a Source.
type Deps struct {
	// Informers are those of the cluster, or of some of its namespaces. They are shared, and
	// their owner runs them.
	Informers cache.Informers
	Log       *slog.Logger
}

// Source reads Functions, their revisions, and Runtimes.
type Source struct {
	config  Config
	deps    Deps
	catalog *catalog.Catalog
	synced  chan struct{}

	mu        sync.Mutex
	functions map[invocation.FunctionKey]*v1alpha1.Function // as they were written
	// revisions are by the function that they name, which need not be known or be theirs,
	// and by their own names.
	revisions map[invocation.FunctionKey]map[string]*v1alpha1.FunctionRevision
	runtimes  map[string]*v1alpha1.ClusterRuntime
	// namespaces are the labels of namespaces, by name.
	namespaces map[string]map[string]string
	lists      catalog.Lists
}

// New makes a Source. It starts nothing.
func New(config Config, deps Deps) *Source {
	return &Source{
		config:     config,
		deps:       deps,
		catalog:    catalog.New(),
		synced:     make(chan struct{}),
		functions:  make(map[invocation.FunctionKey]*v1alpha1.Function),
		revisions:  make(map[invocation.FunctionKey]map[string]*v1alpha1.FunctionRevision),
		runtimes:   make(map[string]*v1alpha1.ClusterRuntime),
		namespaces: make(map[string]map[string]string),
	}
}

// Catalog is what the Source fills.
func (s *Source) Catalog() *catalog.Catalog { return s.catalog }

// Synced is closed when everything that existed at first has been read.
func (s *Source) Synced() <-chan struct{} { return s.synced }

// Get returns the Runtime of that name. It is shared and must not be changed.
func (s *Source) Get(name string) (*v1alpha1.ClusterRuntime, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	rt, known := s.runtimes[name]
	return rt, known
}

// List returns all Runtimes, in no order. They are shared and must not be changed.
func (s *Source) List() []*v1alpha1.ClusterRuntime {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Collect(maps.Values(s.runtimes))
}

// NamespaceLabels are the labels of a namespace, which are shared and must not be changed;
// nil if it is not known.
func (s *Source) NamespaceLabels(name string) map[string]string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.namespaces[name]
}

// namespaceMeta is for reading only the metadata of namespaces.
func namespaceMeta() *metav1.PartialObjectMetadata {
	o := &metav1.PartialObjectMetadata{}
	o.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Namespace"))
	return o
}

// retryInterval is how long a Source that begins while the API server is away waits before
// it asks again.
const retryInterval = 2 * time.Second

// Run follows the cluster until ctx ends. If the API server is away it begins when that
// is back. It returns an error only if it can never begin.
func (s *Source) Run(ctx context.Context) error {
	kinds := []kind{
		{&v1alpha1.FunctionRevision{}, s.revisionChanged, s.revisionGone},
		{&v1alpha1.Function{}, s.functionChanged, s.functionGone},
	}
	// Functions last: a function that is read before its ClusterRuntime or its revisions would
	// seem to change when those are read.
	if s.config.Runtimes {
		kinds = append([]kind{
			{&v1alpha1.ClusterRuntime{}, s.runtimeChanged, s.runtimeGone},
			{namespaceMeta(), s.namespaceChanged, s.namespaceGone},
		}, kinds...)
	}
	for _, k := range kinds {
		has, err := s.watchKind(ctx, k)
		if err != nil || !toolscache.WaitForCacheSync(ctx.Done(), has) {
			return unlessEnded(ctx, err)
		}
	}
	close(s.synced)
	<-ctx.Done()
	return nil
}

// kind is a kind of objects, with handlers for changed and deleted ones.
type kind struct {
	of            client.Object
	changed, gone func(any)
}

// unlessEnded is err, unless that is only that ctx has ended.
func unlessEnded(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return nil
	}
	return err
}

// watchKind passes on the objects of one kind. Its result reports whether all initial objects
// were passed on.
func (s *Source) watchKind(ctx context.Context, k kind) (toolscache.InformerSynced, error) {
	informer, err := s.informer(ctx, k.of)
	if err != nil {
		return nil, fmt.Errorf("kube: following %T: %w", k.of, err)
	}
	registration, err := informer.AddEventHandler(toolscache.ResourceEventHandlerFuncs{
		AddFunc:    k.changed,
		UpdateFunc: func(_, now any) { k.changed(now) },
		DeleteFunc: func(last any) {
			if unseen, ok := last.(toolscache.DeletedFinalStateUnknown); ok {
				last = unseen.Obj
			}
			k.gone(last)
		},
	})
	if err != nil {
		return nil, fmt.Errorf("kube: following %T: %w", k.of, err)
	}
	return registration.HasSynced, nil
}

// informer is that of a kind, as soon as the API server says what that is. A kind that
// it does not know will not come by waiting.
func (s *Source) informer(ctx context.Context, kind client.Object) (cache.Informer, error) {
	for {
		informer, err := s.deps.Informers.GetInformer(ctx, kind)
		if err == nil || ctx.Err() != nil || meta.IsNoMatchError(err) || runtime.IsNotRegisteredError(err) {
			return informer, err
		}
		s.deps.Log.Warn("the API server cannot be asked for Functions; trying again until it answers", "every", retryInterval, "err", err)
		select {
		case <-time.After(retryInterval):
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

func (s *Source) functionChanged(object any) {
	fn, ok := object.(*v1alpha1.Function)
	if !ok {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if fn.DeletionTimestamp != nil {
		s.removeFunction(fn.Key())
		return
	}
	before := s.functions[fn.Key()]
	s.functions[fn.Key()] = fn
	if before == nil || !sameFunction(before, fn) {
		s.publish(fn)
	}
}

func (s *Source) functionGone(object any) {
	if fn, ok := object.(*v1alpha1.Function); ok {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.removeFunction(fn.Key())
	}
}

func (s *Source) removeFunction(key invocation.FunctionKey) {
	delete(s.functions, key)
	s.catalog.Remove(key)
}

func (s *Source) runtimeChanged(object any) {
	rt, ok := object.(*v1alpha1.ClusterRuntime)
	if !ok {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	before := s.runtimes[rt.Name]
	s.runtimes[rt.Name] = rt
	if before == nil || before.Spec.Protocol != rt.Spec.Protocol {
		s.refreshFunctionsOf(rt.Name)
	}
}

func (s *Source) runtimeGone(object any) {
	if rt, ok := object.(*v1alpha1.ClusterRuntime); ok {
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(s.runtimes, rt.Name)
	}
}

func (s *Source) namespaceChanged(object any) {
	if o, ok := object.(*metav1.PartialObjectMetadata); ok {
		labels := o.Labels
		if labels == nil {
			labels = map[string]string{}
		}
		s.mu.Lock()
		defer s.mu.Unlock()
		s.namespaces[o.Name] = labels
	}
}

func (s *Source) namespaceGone(object any) {
	if o, ok := object.(*metav1.PartialObjectMetadata); ok {
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(s.namespaces, o.Name)
	}
}

// refreshFunctionsOf looks again at the functions of a runtime. Their revisions are complete
// without it.
func (s *Source) refreshFunctionsOf(name string) {
	for _, fn := range s.functions {
		if string(fn.Spec.Template.RuntimeRef.Name) == name {
			s.publish(fn)
		}
	}
}
