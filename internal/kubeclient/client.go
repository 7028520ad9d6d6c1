package kubeclient

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/version"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/windlass-dev/windlass/api/v1alpha1"
	"github.com/windlass-dev/windlass/api/wellknown"
	"github.com/windlass-dev/windlass/pkg/invocation"
)

// Client does what the command's verbs need in one cluster. It may be used by
// many goroutines at a time, and holds nothing that needs closing.
type Client struct {
	*cluster
	functions
	components
	keyList
	logs    LogOpener
	version func(ctx context.Context) (string, error)
}

// cluster is what all parts of a Client ask.
type cluster struct {
	context string
	kube    client.Client
}

// functions reads and changes Functions, and the ConfigMaps with their code.
type functions struct {
	*cluster
	// codeGrace is the constant of this name, but in tests.
	codeGrace time.Duration
}

// Deps are how a Client reaches the cluster.
type Deps struct {
	// Context is the name that errors give the cluster.
	Context string
	// Kube reads and writes objects. Its scheme is that of Scheme.
	Kube client.Client
	// Logs and Streams are for what is in pods.
	Logs    LogOpener
	Streams StreamDialer
	// Version is that of the API server.
	Version func(ctx context.Context) (string, error)
}

// New makes a Client for an Access. It connects to nothing yet. What the API
// server warns of is written to warnings.
func New(access *Access, warnings io.Writer) (*Client, error) {
	config := access.warnTo(warnings)
	// The few resources are known: asking the server for all that it has
	// would take longer than the rest.
	kube, err := client.New(config, client.Options{Scheme: Scheme(), Mapper: mapper()})
	if err != nil {
		return nil, fmt.Errorf("the context %s of the kubeconfig cannot be used: %w: correct it, or name another with --context", access.Context, err)
	}
	pods, err := newPodClient(config)
	if err != nil {
		return nil, fmt.Errorf("the context %s of the kubeconfig cannot be used: %w: correct it, or name another with --context", access.Context, err)
	}
	return NewWith(Deps{Context: access.Context, Kube: kube, Logs: pods, Streams: pods, Version: versionOf(config)}), nil
}

// NewWith makes a Client with its parts.
func NewWith(deps Deps) *Client {
	c := &cluster{context: deps.Context, kube: deps.Kube}
	pods := components{c, deps.Streams}
	return &Client{cluster: c, functions: functions{c, codeGrace}, components: pods, keyList: keyList{pods}, logs: deps.Logs, version: deps.Version}
}

// ServerVersion is the version of the API server, such as v1.34.0.
func (c *Client) ServerVersion(ctx context.Context) (string, error) {
	version, err := c.version(ctx)
	if err != nil {
		return "", c.explain(invocation.FunctionKey{}, err)
	}
	return version, nil
}

func versionOf(config *rest.Config) func(context.Context) (string, error) {
	return func(ctx context.Context) (string, error) {
		api, err := discovery.NewDiscoveryClientForConfig(config)
		if err != nil {
			return "", err
		}
		text, err := api.RESTClient().Get().AbsPath("/version").Do(ctx).Raw()
		if err != nil {
			return "", err
		}
		var info version.Info
		err = json.Unmarshal(text, &info)
		return info.GitVersion, err
	}
}

// Scheme has the kinds that a Client uses.
func Scheme() *runtime.Scheme {
	scheme := runtime.NewScheme()
	scheme.AddKnownTypes(corev1.SchemeGroupVersion, &corev1.Pod{}, &corev1.PodList{}, &corev1.PodLogOptions{},
		&corev1.ConfigMap{}, &corev1.ConfigMapList{}, &corev1.Event{}, &corev1.EventList{}, &corev1.Secret{}, &corev1.SecretList{})
	metav1.AddToGroupVersion(scheme, corev1.SchemeGroupVersion)
	if err := v1alpha1.AddToScheme(scheme); err != nil {
		panic("kubecontrol: the scheme takes no Function: " + err.Error())
	}
	return scheme
}

func mapper() meta.RESTMapper {
	m := meta.NewDefaultRESTMapper([]schema.GroupVersion{corev1.SchemeGroupVersion, v1alpha1.GroupVersion})
	for _, kind := range []string{v1alpha1.KindFunction, v1alpha1.KindFunctionRevision} {
		m.Add(v1alpha1.GroupVersion.WithKind(kind), meta.RESTScopeNamespace)
	}
	for _, kind := range []string{"Pod", "ConfigMap", "Event", "Secret"} {
		m.Add(corev1.SchemeGroupVersion.WithKind(kind), meta.RESTScopeNamespace)
	}
	return m
}

// List returns the functions of a namespace, or all if it is empty, in the order
// of their keys.
func (f *functions) List(ctx context.Context, namespace string) (*v1alpha1.FunctionList, error) {
	list := &v1alpha1.FunctionList{}
	if err := f.kube.List(ctx, list, client.InNamespace(namespace)); err != nil {
		return nil, f.explain(invocation.FunctionKey{Namespace: namespace}, err)
	}
	list.SetGroupVersionKind(v1alpha1.GroupVersion.WithKind(v1alpha1.KindFunction + "List"))
	for i := range list.Items {
		tidy(&list.Items[i])
	}
	slices.SortFunc(list.Items, func(a, b v1alpha1.Function) int { return a.Key().Compare(b.Key()) })
	return list, nil
}

// Get returns a function with its status.
func (f *functions) Get(ctx context.Context, key invocation.FunctionKey) (*v1alpha1.Function, error) {
	fn := &v1alpha1.Function{}
	if err := f.kube.Get(ctx, client.ObjectKey{Namespace: key.Namespace, Name: key.Name}, fn); err != nil {
		return nil, f.explain(key, err)
	}
	tidy(fn)
	return fn, nil
}

// Revisions returns the revisions of a function, oldest first.
func (f *functions) Revisions(ctx context.Context, fn *v1alpha1.Function) ([]v1alpha1.FunctionRevision, error) {
	list := &v1alpha1.FunctionRevisionList{}
	of := client.MatchingLabels{wellknown.LabelFunctionUID: string(fn.UID)}
	if err := f.kube.List(ctx, list, client.InNamespace(fn.Namespace), of); err != nil {
		return nil, f.explain(fn.Key(), err)
	}
	slices.SortFunc(list.Items, func(a, b v1alpha1.FunctionRevision) int {
		return cmp.Compare(a.Spec.Number, b.Spec.Number)
	})
	return list.Items, nil
}

// Delete requests a function's removal. The Function exists until its instances have ended.
func (f *functions) Delete(ctx context.Context, key invocation.FunctionKey) error {
	fn := &v1alpha1.Function{ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name}}
	if err := f.kube.Delete(ctx, fn, client.PropagationPolicy(metav1.DeletePropagationBackground)); err != nil {
		return f.explain(key, err)
	}
	return nil
}

// tidy makes a Function look as its author knows it.
func tidy(fn *v1alpha1.Function) {
	fn.SetGroupVersionKind(v1alpha1.GroupVersion.WithKind(v1alpha1.KindFunction))
	fn.ManagedFields = nil
}
