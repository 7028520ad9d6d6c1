package controller

import (
	"errors"
	"fmt"
	"log/slog"

	"github.com/prometheus/client_golang/prometheus"
	"google.golang.org/grpc"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/windlass-dev/windlass/api/v1alpha1"
	"github.com/windlass-dev/windlass/api/wellknown"
	"github.com/windlass-dev/windlass/pkg/catalog/kube"
	"github.com/windlass-dev/windlass/pkg/gateway/address"
)

// LeaseName is the name of the Lease by which controllers elect one of them.
const LeaseName = "windlass-controller"

// Config is what a Controller needs to know.
type Config struct {
	// Namespace is that of the controller itself: of its Lease and of the
	// schedulers' Service.
	Namespace string
	// Namespaces are the namespaces whose Functions it manages; empty means all.
	Namespaces []string
	// SchedulerService is the headless Service of the schedulers.
	SchedulerService string
	// Hosts say where functions are called, for their statuses.
	Hosts address.Rules
	// NodeAgents says that there are some, so that classes and slices have an effect.
	NodeAgents bool
	// LatencyCritical are the namespaces whose functions may have ClassLatencyCritical;
	// wellknown.AllNamespaces stands for every one. Node agents have the same list.
	LatencyCritical []string
	// Runtimes are installed, and installed again when they are deleted.
	Runtimes []v1alpha1.ClusterRuntime
	// Egress is where instances of functions may connect to.
	Egress Egress
	// LeaderElection lets only one of several controllers work at a time.
	LeaderElection bool
}

// Validate returns an error that names the invalid settings.
func (c Config) Validate() error {
	var errs []error
	if c.Namespace == "" {
		errs = append(errs, errors.New("controller: Namespace must be set"))
	}
	if c.SchedulerService == "" {
		errs = append(errs, errors.New("controller: SchedulerService must be set"))
	}
	if err := c.Egress.Validate(); err != nil {
		errs = append(errs, fmt.Errorf("controller: %w", err))
	}
	for _, r := range c.Runtimes {
		v1alpha1.DefaultClusterRuntime(&r)
		for _, err := range v1alpha1.ValidateClusterRuntime(&r) {
			errs = append(errs, fmt.Errorf("controller: ClusterRuntime %q: %w", r.Name, err))
		}
	}
	return errors.Join(errs...)
}

// Deps are what a Controller works with.
type Deps struct {
	// REST is how to reach the API server.
	REST *rest.Config
	// Dial are the options of connections to schedulers, credentials among
	// them.
	Dial []grpc.DialOption
	// Schedulers is nil to find them by Config.SchedulerService.
	Schedulers Schedulers
	Registerer prometheus.Registerer
	Log        *slog.Logger
}

// Scheme knows every kind that the controller and Cleanup work with.
func Scheme() (*runtime.Scheme, error) {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{
		coordinationv1.AddToScheme, corev1.AddToScheme, networkingv1.AddToScheme, policyv1.AddToScheme, discoveryv1.AddToScheme, v1alpha1.AddToScheme,
	} {
		if err := add(scheme); err != nil {
			return nil, err
		}
	}
	return scheme, nil
}

// managedLabels are on everything that Windlass makes.
var managedLabels = map[string]string{wellknown.LabelManagedBy: wellknown.ManagedBy}

// instances selects the pods of all functions, and spare ones.
var instances = metav1.LabelSelector{
	MatchLabels: managedLabels,
	MatchExpressions: []metav1.LabelSelectorRequirement{{
		Key: wellknown.LabelComponent, Operator: metav1.LabelSelectorOpIn,
		Values: []string{wellknown.ComponentFunction, wellknown.ComponentSpare},
	}},
}

func instancePods() labels.Selector {
	selector, err := metav1.LabelSelectorAsSelector(&instances)
	if err != nil {
		panic("controller: invalid selector: " + err.Error())
	}
	return selector
}

// cacheOptions keep in memory only what the controller looks at.
func (c Config) cacheOptions() cache.Options {
	options := cache.Options{
		ByObject: map[client.Object]cache.ByObject{
			&v1alpha1.Function{}:          {Transform: kube.Config{}.Transform()},
			&v1alpha1.FunctionRevision{}:  {Transform: kube.Config{}.Transform()},
			&corev1.Pod{}:                 {Label: instancePods(), Transform: slimPod},
			&networkingv1.NetworkPolicy{}: {Label: labels.SelectorFromSet(managedLabels)},
			&discoveryv1.EndpointSlice{}: {
				Namespaces: map[string]cache.Config{c.Namespace: {}},
				Label:      labels.SelectorFromSet(labels.Set{discoveryv1.LabelServiceName: c.SchedulerService}),
			},
		},
	}
	if len(c.Namespaces) > 0 {
		options.DefaultNamespaces = make(map[string]cache.Config)
		for _, namespace := range c.Namespaces {
			options.DefaultNamespaces[namespace] = cache.Config{}
		}
	}
	return options
}

// slimPod leaves of a pod what endedAt, imageIDOf and the selectors need.
func slimPod(object any) (any, error) {
	p, ok := object.(*corev1.Pod)
	if !ok {
		return object, nil
	}
	slim := &corev1.Pod{
		TypeMeta: p.TypeMeta,
		ObjectMeta: metav1.ObjectMeta{
			Name: p.Name, Namespace: p.Namespace, UID: p.UID, ResourceVersion: p.ResourceVersion,
			CreationTimestamp: p.CreationTimestamp, DeletionTimestamp: p.DeletionTimestamp, Labels: p.Labels,
		},
		Status: corev1.PodStatus{Phase: p.Status.Phase},
	}
	for _, c := range p.Status.ContainerStatuses {
		slim.Status.ContainerStatuses = append(slim.Status.ContainerStatuses,
			corev1.ContainerStatus{Name: c.Name, State: c.State, ImageID: c.ImageID})
	}
	return slim, nil
}
