package tenant

import (
	"context"
	"errors"
	"fmt"
	"net"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/windlass-dev/windlass/api/v1alpha1"
	"github.com/windlass-dev/windlass/api/wellknown"
	"github.com/windlass-dev/windlass/internal/sleep"
)

// AskEvery is how often the API server is asked for what is awaited.
const AskEvery = 50 * time.Millisecond

// Tenant is a cluster, with a namespace of our own in it.
type Tenant struct {
	Core kubernetes.Interface
	API  client.Client
	// Release is the namespace of Windlass.
	Release   string
	Namespace string
}

// New makes a namespace whose name begins with a prefix. The kubeconfig is an
// administrator's.
func New(ctx context.Context, kubeconfig, release, prefix string) (*Tenant, error) {
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return nil, err
	}
	config.QPS, config.Burst = 100, 200
	scheme := runtime.NewScheme()
	if err := errors.Join(clientgoscheme.AddToScheme(scheme), v1alpha1.AddToScheme(scheme)); err != nil {
		return nil, err
	}
	t := &Tenant{Release: release}
	if t.Core, err = kubernetes.NewForConfig(config); err != nil {
		return nil, err
	}
	if t.API, err = client.New(config, client.Options{Scheme: scheme}); err != nil {
		return nil, err
	}
	ns, err := t.Core.CoreV1().Namespaces().Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: prefix}}, metav1.CreateOptions{})
	if err != nil {
		return nil, err
	}
	t.Namespace = ns.Name
	return t, nil
}

// Remove removes the namespace and all in it.
func (t *Tenant) Remove(ctx context.Context) error {
	if err := t.Core.CoreV1().Namespaces().Delete(ctx, t.Namespace, metav1.DeleteOptions{}); err != nil {
		return err
	}
	return sleep.Until(ctx, AskEvery, func() (bool, error) {
		_, err := t.Core.CoreV1().Namespaces().Get(ctx, t.Namespace, metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			return true, nil
		}
		return false, err
	})
}

// Gateway is the URL of the gateways' Service if it can be reached from here.
func (t *Tenant) Gateway(ctx context.Context) (string, error) {
	service, err := t.Core.CoreV1().Services(t.Release).Get(ctx, "windlass-gateway", metav1.GetOptions{})
	if err != nil {
		return "", fmt.Errorf("%w: give --gateway", err)
	}
	address := net.JoinHostPort(service.Spec.ClusterIP, "80")
	conn, err := (&net.Dialer{Timeout: 2 * time.Second}).DialContext(ctx, "tcp", address)
	if err != nil {
		return "", fmt.Errorf("the gateways cannot be reached from here: %w: give --gateway", err)
	}
	return "http://" + address, conn.Close()
}

// Create makes a function in the namespace and waits until it can be called. No instance
// starts before its calls, or before minInstances asks for it: what is measured is the
// first call's own start, and not that of a proof.
func (t *Tenant) Create(ctx context.Context, name string, spec v1alpha1.FunctionSpec, change ...func(*v1alpha1.Function)) (*v1alpha1.Function, error) {
	fn := &v1alpha1.Function{ObjectMeta: metav1.ObjectMeta{Namespace: t.Namespace, Name: name}, Spec: spec}
	fn.Spec.Rollout.Verify = v1alpha1.VerifyNone
	for _, c := range change {
		c(fn)
	}
	if err := t.API.Create(ctx, fn); err != nil {
		return nil, err
	}
	return fn, sleep.Until(ctx, AskEvery, func() (bool, error) {
		if err := t.API.Get(ctx, client.ObjectKeyFromObject(fn), fn); err != nil {
			return false, err
		}
		return meta.IsStatusConditionTrue(fn.Status.Conditions, v1alpha1.ConditionReady), nil
	})
}

// Delete removes a function and waits until its pods are gone.
func (t *Tenant) Delete(ctx context.Context, fn *v1alpha1.Function) error {
	if err := t.API.Delete(ctx, fn); err != nil {
		return err
	}
	return t.UntilPods(ctx, fn.Name, 0)
}

// UntilPods waits until a function has so many pods.
func (t *Tenant) UntilPods(ctx context.Context, function string, n int) error {
	return sleep.Until(ctx, AskEvery, func() (bool, error) {
		pods, err := t.Core.CoreV1().Pods(t.Namespace).List(ctx, metav1.ListOptions{LabelSelector: wellknown.LabelFunction + "=" + function})
		return err == nil && len(pods.Items) == n, err
	})
}
