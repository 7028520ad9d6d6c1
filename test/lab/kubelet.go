package lab

import (
	"context"
	"fmt"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"

	"github.com/windlass-dev/windlass/internal/sleep"
)

// Images that the lab's kubelet knows, besides lab/NAME, which runs NAME of the workspace.
const (
	// ImageFunction runs the lab's function program.
	ImageFunction = "lab/function"
	// ImageMissing is one that cannot be pulled.
	ImageMissing = "lab/missing"
)

// Kubelet runs the pods of every node of the lab: a function and an agent each,
// as processes in a network namespace of their own.
type Kubelet struct {
	lab   *Lab
	core  kubernetes.Interface
	nodes []string
	// run lets a pod live until stop, which ends all pods.
	run    func(*Pod)
	stop   context.CancelFunc
	ending sync.WaitGroup

	mu sync.Mutex
	// agent is the program of new pods' agents.
	agent string
	// closing says that no more pods are run.
	closing bool
	// number counts the pods since the lab began.
	number int
	pods   map[types.UID]*Pod
	lost   map[string]bool
	// paused keeps what is to be done, in backlog.
	paused  bool
	backlog []*corev1.Pod
}

// openKubelet creates the nodes and begins to run their pods.
func openKubelet(ctx context.Context, l *Lab) (*Kubelet, error) {
	k := &Kubelet{
		lab: l, core: l.Cluster.Core, agent: l.Config.Program("podagent"),
		pods: make(map[types.UID]*Pod), lost: make(map[string]bool),
	}
	for i := range l.Config.Nodes {
		name := fmt.Sprintf("node-%d", i+1)
		k.nodes = append(k.nodes, name)
		if err := k.createNode(ctx, name); err != nil {
			return nil, err
		}
	}
	living, stop := context.WithCancel(context.WithoutCancel(ctx))
	k.stop = stop
	k.run = func(pod *Pod) { k.ending.Go(func() { pod.live(living) }) }
	factory := informers.NewSharedInformerFactory(k.core, 0)
	pods := factory.Core().V1().Pods().Informer()
	_, err := pods.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    func(o any) { k.sync(o.(*corev1.Pod)) },
		UpdateFunc: func(_, o any) { k.sync(o.(*corev1.Pod)) },
		DeleteFunc: func(o any) {
			if pod, ok := o.(*corev1.Pod); ok {
				k.gone(pod.UID)
			}
		},
	})
	if err != nil {
		return nil, err
	}
	factory.Start(living.Done())
	if !cache.WaitForCacheSync(ctx.Done(), pods.HasSynced) {
		return nil, fmt.Errorf("the kubelet cannot follow pods: %w", context.Cause(ctx))
	}
	return k, nil
}

func (k *Kubelet) createNode(ctx context.Context, name string) error {
	node, err := k.core.CoreV1().Nodes().Create(ctx, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}}, metav1.CreateOptions{})
	if err != nil {
		return err
	}
	node.Status.Allocatable = corev1.ResourceList{
		corev1.ResourceCPU: resource.MustParse("8"), corev1.ResourceMemory: resource.MustParse("16Gi"), corev1.ResourcePods: resource.MustParse("50"),
	}
	node.Status.Capacity = node.Status.Allocatable
	node.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue, Reason: "KubeletReady"}}
	_, err = k.core.CoreV1().Nodes().UpdateStatus(ctx, node, metav1.UpdateOptions{})
	if err != nil {
		return err
	}
	// No controller of nodes runs that would take it away.
	node, err = k.core.CoreV1().Nodes().Get(ctx, name, metav1.GetOptions{})
	if err == nil && len(node.Spec.Taints) > 0 {
		node.Spec.Taints = nil
		_, err = k.core.CoreV1().Nodes().Update(ctx, node, metav1.UpdateOptions{})
	}
	return err
}

// sync does what a pod's object asks for.
func (k *Kubelet) sync(object *corev1.Pod) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.lost[object.Spec.NodeName] || object.Spec.NodeName == "" {
		return
	}
	if k.paused {
		k.backlog = append(k.backlog, object)
		return
	}
	pod := k.pods[object.UID]
	switch {
	case pod == nil && !k.closing && object.Status.Phase != corev1.PodFailed && object.Status.Phase != corev1.PodSucceeded:
		pod = newPod(k, object, podAddr(k.number), fmt.Sprintf("p%d", k.number))
		k.number++
		k.pods[object.UID] = pod
		k.run(pod)
	case pod == nil:
		return
	}
	if object.DeletionTimestamp != nil {
		pod.terminate(object.DeletionGracePeriodSeconds)
	}
}

// gone is told that a pod's object does not exist any more.
func (k *Kubelet) gone(uid types.UID) {
	k.mu.Lock()
	pod := k.pods[uid]
	k.mu.Unlock()
	if pod != nil {
		pod.kill()
	}
}

// removePod is called by a pod that has ended.
func (k *Kubelet) removePod(pod *Pod) {
	k.mu.Lock()
	defer k.mu.Unlock()
	delete(k.pods, pod.object.UID)
}

// UseAgent has new pods run another agent.
func (k *Kubelet) UseAgent(path string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.agent = path
}

func (k *Kubelet) agentProgram() string {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.agent
}

// Pods are those that run now.
func (k *Kubelet) Pods() []*Pod {
	k.mu.Lock()
	defer k.mu.Unlock()
	var running []*Pod
	for _, pod := range k.pods {
		if pod.running() {
			running = append(running, pod)
		}
	}
	return running
}

// PodsOf are the pods of a function that run now.
func (k *Kubelet) PodsOf(function string) []*Pod {
	var of []*Pod
	for _, pod := range k.Pods() {
		if pod.Function == function {
			of = append(of, pod)
		}
	}
	return of
}

// LoseNode cuts a node's power: its pods end at once, and after so long the
// cluster notes that the node does not answer.
func (k *Kubelet) LoseNode(ctx context.Context, name string, noticed time.Duration) error {
	k.mu.Lock()
	k.lost[name] = true
	for _, pod := range k.pods {
		if pod.object.Spec.NodeName == name {
			pod.cutPower()
		}
	}
	k.mu.Unlock()
	sleep.For(ctx, noticed)
	return k.setReady(ctx, name, corev1.ConditionUnknown)
}

// ReturnNode gives a node its power back, if it lost it. The pods that it had are
// gone.
func (k *Kubelet) ReturnNode(ctx context.Context, name string) error {
	k.mu.Lock()
	lost := k.lost[name]
	k.mu.Unlock()
	if !lost {
		return nil
	}
	pods, err := k.core.CoreV1().Pods("").List(ctx, metav1.ListOptions{FieldSelector: "spec.nodeName=" + name})
	if err != nil {
		return err
	}
	for i := range pods.Items {
		k.remove(ctx, &pods.Items[i])
	}
	k.mu.Lock()
	delete(k.lost, name)
	k.mu.Unlock()
	return k.setReady(ctx, name, corev1.ConditionTrue)
}

// Nodes are the names of all nodes.
func (k *Kubelet) Nodes() []string { return k.nodes }

func (k *Kubelet) setReady(ctx context.Context, name string, status corev1.ConditionStatus) error {
	patch := fmt.Sprintf(`{"status":{"conditions":[{"type":"Ready","status":%q,"reason":"Lab"}]}}`, status)
	_, err := k.core.CoreV1().Nodes().Patch(ctx, name, types.StrategicMergePatchType, []byte(patch), metav1.PatchOptions{}, "status")
	return err
}

// remove removes a pod's object at once.
func (k *Kubelet) remove(ctx context.Context, object *corev1.Pod) {
	now := metav1.DeleteOptions{GracePeriodSeconds: new(int64), Preconditions: &metav1.Preconditions{UID: &object.UID}}
	_ = k.core.CoreV1().Pods(object.Namespace).Delete(ctx, object.Name, now)
}

// close ends all pods and waits for them, but not for ever.
func (k *Kubelet) close(within time.Duration) {
	k.mu.Lock()
	k.closing = true
	k.mu.Unlock()
	k.stop()
	ended := make(chan struct{})
	go func() {
		k.ending.Wait()
		close(ended)
	}()
	select {
	case <-ended:
	case <-time.After(within):
	}
}

// Delete deletes a pod, which then has its usual grace.
func (k *Kubelet) Delete(ctx context.Context, pod *Pod) error {
	return k.core.CoreV1().Pods(pod.object.Namespace).Delete(ctx, pod.object.Name, metav1.DeleteOptions{})
}

// DeleteWithin deletes a pod, which then has so many seconds.
func (k *Kubelet) DeleteWithin(ctx context.Context, pod *Pod, seconds int64) error {
	return k.core.CoreV1().Pods(pod.object.Namespace).Delete(ctx, pod.object.Name, metav1.DeleteOptions{GracePeriodSeconds: &seconds})
}

// Pause makes the kubelets of all nodes do nothing, while their pods go on, until
// resume is called.
func (k *Kubelet) Pause() (resume func()) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.paused = true
	return func() {
		k.mu.Lock()
		backlog := k.backlog
		k.paused, k.backlog = false, nil
		k.mu.Unlock()
		for _, object := range backlog {
			k.sync(object)
		}
	}
}

// Cordon says whether a node takes no more pods.
func (k *Kubelet) Cordon(ctx context.Context, name string, cordoned bool) error {
	patch := fmt.Sprintf(`{"spec":{"unschedulable":%v}}`, cordoned)
	_, err := k.core.CoreV1().Nodes().Patch(ctx, name, types.StrategicMergePatchType, []byte(patch), metav1.PatchOptions{})
	return err
}
