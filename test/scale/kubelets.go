package main

import (
	"context"
	"log/slog"
	"sync"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
)

// kubelets play the kubelets of all nodes: a pod runs as soon as they see it, and
// is gone as soon as it is to end.
type kubelets struct {
	client kubernetes.Interface
	pods   chan *corev1.Pod
}

const runs = `{"status":{"phase":"Running","containerStatuses":[` +
	`{"name":"agent","image":"i","imageID":"i","ready":true,"restartCount":0,"state":{"running":{}}},` +
	`{"name":"function","image":"i","imageID":"i","ready":true,"restartCount":0,"state":{"running":{}}}]}}`

// run plays until ctx ends.
func (k *kubelets) run(ctx context.Context) error {
	factory := informers.NewSharedInformerFactory(k.client, 0)
	_, err := factory.Core().V1().Pods().Informer().AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    func(object any) { k.see(ctx, object) },
		UpdateFunc: func(_, object any) { k.see(ctx, object) },
	})
	if err != nil {
		return err
	}
	factory.Start(ctx.Done())
	var playing sync.WaitGroup
	for range 16 {
		playing.Go(func() { k.play(ctx) })
	}
	playing.Wait()
	factory.Shutdown()
	return nil
}

func (k *kubelets) see(ctx context.Context, object any) {
	pod, ok := object.(*corev1.Pod)
	if !ok || pod.DeletionTimestamp == nil && pod.Status.Phase == corev1.PodRunning {
		return
	}
	select {
	case k.pods <- pod:
	case <-ctx.Done():
	}
}

func (k *kubelets) play(ctx context.Context) {
	for {
		select {
		case pod := <-k.pods:
			if err := k.attend(ctx, pod); err != nil && ctx.Err() == nil && !apierrors.IsNotFound(err) && !apierrors.IsConflict(err) {
				slog.Warn("playing kubelet", "pod", pod.Name, "error", err)
			}
		case <-ctx.Done():
			return
		}
	}
}

func (k *kubelets) attend(ctx context.Context, pod *corev1.Pod) error {
	pods := k.client.CoreV1().Pods(pod.Namespace)
	if pod.DeletionTimestamp != nil {
		return pods.Delete(ctx, pod.Name, metav1.DeleteOptions{
			GracePeriodSeconds: new(int64(0)), Preconditions: &metav1.Preconditions{UID: &pod.UID},
		})
	}
	_, err := pods.Patch(ctx, pod.Name, types.StrategicMergePatchType, []byte(runs), metav1.PatchOptions{}, "status")
	return err
}
