package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/windlass-dev/windlass/api/v1alpha1"
	"github.com/windlass-dev/windlass/pkg/provisioner/podspec"
)

// world is the cluster, with a namespace of our own in it.
type world struct {
	core      kubernetes.Interface
	api       client.Client
	release   string // the namespace of Windlass
	namespace string
}

func newWorld(ctx context.Context, kubeconfig, release string) (*world, error) {
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return nil, err
	}
	config.QPS, config.Burst = 100, 200
	scheme := runtime.NewScheme()
	if err := errors.Join(clientgoscheme.AddToScheme(scheme), v1alpha1.AddToScheme(scheme)); err != nil {
		return nil, err
	}
	w := &world{release: release}
	if w.core, err = kubernetes.NewForConfig(config); err != nil {
		return nil, err
	}
	if w.api, err = client.New(config, client.Options{Scheme: scheme}); err != nil {
		return nil, err
	}
	ns, err := w.core.CoreV1().Namespaces().Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "coldstart-"}}, metav1.CreateOptions{})
	if err != nil {
		return nil, err
	}
	w.namespace = ns.Name
	return w, nil
}

// remove removes the namespace and all in it.
func (w *world) remove(ctx context.Context) error {
	err := w.core.CoreV1().Namespaces().Delete(ctx, w.namespace, metav1.DeleteOptions{})
	if err != nil {
		return err
	}
	return until(ctx, func() (bool, error) {
		_, err := w.core.CoreV1().Namespaces().Get(ctx, w.namespace, metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			return true, nil
		}
		return false, err
	})
}

// gateway is the URL of the gateways' Service if it can be reached from here.
func (w *world) gateway(ctx context.Context) (string, error) {
	service, err := w.core.CoreV1().Services(w.release).Get(ctx, "windlass-gateway", metav1.GetOptions{})
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

// create makes a function and waits until it can be called.
func (w *world) create(ctx context.Context, name, image string) (*v1alpha1.Function, error) {
	fn := &v1alpha1.Function{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: name}}
	fn.Spec.Image, fn.Spec.Args = image, []string{"httpd"}
	if err := w.api.Create(ctx, fn); err != nil {
		return nil, err
	}
	return fn, until(ctx, func() (bool, error) {
		if err := w.api.Get(ctx, client.ObjectKeyFromObject(fn), fn); err != nil {
			return false, err
		}
		return meta.IsStatusConditionTrue(fn.Status.Conditions, v1alpha1.ConditionReady), nil
	})
}

// delete removes a function and waits until its pods are gone.
func (w *world) delete(ctx context.Context, fn *v1alpha1.Function) error {
	if err := w.api.Delete(ctx, fn); err != nil {
		return err
	}
	return until(ctx, func() (bool, error) {
		pods, err := w.core.CoreV1().Pods(w.namespace).List(ctx, metav1.ListOptions{})
		return err == nil && len(pods.Items) == 0, err
	})
}

// until asks again and again until it is so, or an error.
func until(ctx context.Context, so func() (bool, error)) error {
	for {
		if done, err := so(); done || err != nil {
			return err
		}
		if err := rest(ctx, 50*time.Millisecond); err != nil {
			return err
		}
	}
}

func rest(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-timer.C:
		return nil
	}
}

// sighting is a pod and when it was first seen.
type sighting struct {
	pod *corev1.Pod
	at  time.Time
}

// firstPod watches for the function's first pod until stop is called. The watch
// stands when it returns.
func (w *world) firstPod(ctx context.Context, function string) (seen <-chan sighting, stop func(), err error) {
	watcher, err := w.core.CoreV1().Pods(w.namespace).Watch(ctx, metav1.ListOptions{LabelSelector: v1alpha1.LabelFunction + "=" + function})
	if err != nil {
		return nil, nil, err
	}
	first := make(chan sighting, 1)
	go func() {
		for event := range watcher.ResultChan() {
			if pod, isPod := event.Object.(*corev1.Pod); isPod && event.Type == watch.Added {
				select {
				case first <- sighting{pod, time.Now()}:
				default: // only the first counts
				}
			}
		}
	}()
	return first, watcher.Stop, nil
}

// decidedAt is what the pod's annotation says.
func decidedAt(pod *corev1.Pod) time.Time {
	at, err := time.Parse(time.RFC3339Nano, pod.Annotations[podspec.AnnotationDecided])
	if err != nil {
		return time.Time{}
	}
	return at
}

// containers waits until the API knows the ids of a pod's containers.
func (w *world) containers(ctx context.Context, name string) (agent, function string, err error) {
	err = until(ctx, func() (bool, error) {
		pod, err := w.core.CoreV1().Pods(w.namespace).Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			return false, err
		}
		for _, status := range pod.Status.ContainerStatuses {
			_, id, _ := strings.Cut(status.ContainerID, "://")
			switch status.Name {
			case podspec.ContainerAgent:
				agent = id
			case podspec.ContainerFunction:
				function = id
			}
		}
		return agent != "" && function != "", nil
	})
	return agent, function, err
}

// What schedulers log of an instance.
const (
	logJoined = "an instance joined"
	logReady  = "an instance is ready"
)

// logged finds when the schedulers logged that an instance joined and was ready;
// zero if they did not.
func (w *world) logged(ctx context.Context, function string, since time.Time) (joined, ready time.Time, err error) {
	pods, err := w.core.CoreV1().Pods(w.release).List(ctx, metav1.ListOptions{LabelSelector: "app.kubernetes.io/component=scheduler"})
	if err != nil {
		return joined, ready, err
	}
	from := metav1.NewTime(since.Add(-time.Second))
	for _, pod := range pods.Items {
		stream, err := w.core.CoreV1().Pods(w.release).GetLogs(pod.Name, &corev1.PodLogOptions{SinceTime: &from}).Stream(ctx)
		if err != nil {
			continue // it is not the one, or has ended
		}
		lines := bufio.NewScanner(stream)
		for lines.Scan() {
			var line struct {
				Time          time.Time
				Msg, Function string
			}
			if json.Unmarshal(lines.Bytes(), &line) != nil || line.Function != w.namespace+"/"+function {
				continue
			}
			switch line.Msg {
			case logJoined:
				joined = line.Time
			case logReady:
				ready = line.Time
			}
		}
		_ = stream.Close()
	}
	return joined, ready, nil
}
