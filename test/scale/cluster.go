package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
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

// scaleCluster is a cluster with nodes and functions.
type scaleCluster struct {
	options options
	// client is the scheduler's; writes counts its requests that write.
	client    kubernetes.Interface
	writes    *counter
	functions []*v1alpha1.Function
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

func newScaleCluster(ctx context.Context, config *rest.Config, o options) (*scaleCluster, error) {
	config = rest.CopyConfig(config)
	config.QPS = -1
	config.ContentType = "application/vnd.kubernetes.protobuf"
	theirs, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	w := &scaleCluster{options: o, writes: &counter{}}
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
	return w, awaitNodes(ctx, theirs, o.nodes)
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

// awaitNodes returns when kwok has made all nodes ready.
func awaitNodes(ctx context.Context, client kubernetes.Interface, nodes int) error {
	var err error
	waited := until(ctx, func() bool {
		var list *corev1.NodeList
		if list, err = client.CoreV1().Nodes().List(ctx, metav1.ListOptions{ResourceVersion: "0"}); err != nil {
			return true
		}
		ready := 0
		for i := range list.Items {
			for _, c := range list.Items[i].Status.Conditions {
				if c.Type == corev1.NodeReady && c.Status == corev1.ConditionTrue {
					ready++
				}
			}
		}
		return ready == nodes
	})
	return errors.Join(waited, err)
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
		},
	}
}

func function(i int) *v1alpha1.Function {
	f := &v1alpha1.Function{}
	f.Name, f.Namespace = fmt.Sprintf("function-%d", i), namespace
	f.UID = types.UID(fmt.Sprintf("00000000-0000-0000-0000-%012d", i))
	f.Spec.Template.Image = "app:1"
	f.Spec.Template.StartupTimeout = v1alpha1.Duration{Duration: time.Hour}
	v1alpha1.Default(f)
	return f
}
