package main

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/windlass-dev/windlass/api/v1alpha1"
)

// namespace is where all pods are.
const namespace = "scale"

// world is a cluster with nodes and functions.
type world struct {
	options options
	// client is the scheduler's; writes counts its requests that write.
	client    kubernetes.Interface
	writes    *counter
	functions []*v1alpha1.Function
	// close ends the kubelets.
	close func()
}

// counter is a transport that counts requests that write, and those of them that
// were answered after creating something.
type counter struct {
	next    http.RoundTripper
	writes  atomic.Int64
	created atomic.Int64
}

// RoundTrip counts and passes on.
func (c *counter) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.Method != http.MethodGet {
		c.writes.Add(1)
	}
	answer, err := c.next.RoundTrip(r)
	if err == nil && answer.StatusCode == http.StatusCreated {
		c.created.Add(1)
	}
	return answer, err
}

func newWorld(ctx context.Context, config *rest.Config, o options) (*world, error) {
	config = rest.CopyConfig(config)
	config.QPS = -1
	config.ContentType = "application/vnd.kubernetes.protobuf"
	theirs, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	w := &world{options: o, writes: &counter{}}
	counted := rest.CopyConfig(config)
	counted.Wrap(func(next http.RoundTripper) http.RoundTripper {
		w.writes.next = next
		return w.writes
	})
	if w.client, err = kubernetes.NewForConfig(counted); err != nil {
		return nil, err
	}
	if err := furnish(ctx, theirs, o.nodes); err != nil {
		return nil, err
	}
	for i := range o.functions {
		w.functions = append(w.functions, function(i))
	}
	ctx, cancel := context.WithCancel(ctx)
	var playing sync.WaitGroup
	playing.Go(func() {
		k := &kubelets{client: theirs, pods: make(chan *corev1.Pod, 1024)}
		if err := k.run(ctx); err != nil {
			slog.Error("the kubelets do not play", "error", err)
		}
	})
	w.close = func() { cancel(); playing.Wait() }
	return w, nil
}

// furnish creates the namespace and the nodes.
func furnish(ctx context.Context, client kubernetes.Interface, nodes int) error {
	_, err := client.CoreV1().Namespaces().Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}, metav1.CreateOptions{})
	if err != nil {
		return err
	}
	numbers, errs := make(chan int), make(chan error, 8)
	for range cap(errs) {
		go func() {
			var failed error
			for i := range numbers {
				if _, err := client.CoreV1().Nodes().Create(ctx, node(i), metav1.CreateOptions{}); err != nil {
					failed = err
				}
			}
			errs <- failed
		}()
	}
	for i := range nodes {
		numbers <- i
	}
	close(numbers)
	for range cap(errs) {
		if failed := <-errs; failed != nil {
			err = failed
		}
	}
	return err
}

func node(i int) *corev1.Node {
	return &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("node-%d", i)},
		Status: corev1.NodeStatus{
			Allocatable: corev1.ResourceList{
				corev1.ResourceCPU:    resource.MustParse("32"),
				corev1.ResourceMemory: resource.MustParse("64Gi"),
				corev1.ResourcePods:   resource.MustParse("110"),
			},
			Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}},
		},
	}
}

func function(i int) *v1alpha1.Function {
	f := &v1alpha1.Function{}
	f.Name, f.Namespace = fmt.Sprintf("function-%d", i), namespace
	f.UID = types.UID(fmt.Sprintf("00000000-0000-0000-0000-%012d", i))
	f.Spec.Image = "app:1"
	f.Spec.StartupTimeout = metav1.Duration{Duration: time.Hour}
	v1alpha1.Default(f)
	return f
}
