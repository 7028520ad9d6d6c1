package kube

import (
	"context"
	"fmt"
	"sync"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"

	"github.com/windlass-dev/windlass/pkg/provisioner/placement"
	"github.com/windlass-dev/windlass/pkg/provisioner/podspec"
)

// indexFunction finds pods by the UID of their function.
const indexFunction = "function"

// podObserver receives all pods, one event after the other.
type podObserver interface {
	podChanged(*corev1.Pod)
	podGone(*corev1.Pod)
}

// nodeObserver receives all nodes, one event after the other.
type nodeObserver interface {
	nodeChanged(*corev1.Node)
	nodeGone(name string)
}

// cluster is what the informers know.
type cluster struct {
	pods, nodes cache.SharedIndexInformer
	// hasSynced say that everything that existed at the start has been delivered.
	hasSynced []cache.InformerSynced
}

// newCluster calls unreached whenever the API cannot be asked for pods.
func newCluster(client Client, podEvents podObserver, nodeEvents nodeObserver, unreached func()) (*cluster, error) {
	c := &cluster{pods: placedPods(client, unreached), nodes: allNodes(client)}
	pods, err := follow(c.pods, podHandler(podEvents))
	if err != nil {
		return nil, fmt.Errorf("kube: watching pods: %w", err)
	}
	nodes, err := follow(c.nodes, nodeHandler(nodeEvents))
	if err != nil {
		return nil, fmt.Errorf("kube: watching nodes: %w", err)
	}
	c.hasSynced = []cache.InformerSynced{pods.HasSynced, nodes.HasSynced}
	return c, nil
}

// follow has an informer deliver slim objects to a handler.
func follow(i cache.SharedIndexInformer, to cache.ResourceEventHandler) (cache.ResourceEventHandlerRegistration, error) {
	if err := i.SetTransform(slim); err != nil {
		return nil, err
	}
	return i.AddEventHandler(to)
}

// The informers are made by hand: the factory of client-go brings the clients and the informers
// of all kinds into the program, more than a fifth of its size.

// podsWithANode selects them in the API.
const podsWithANode = "spec.nodeName!="

// placedPods is an informer of the pods that have a node: the others request nothing of
// any, and instances have theirs from the start.
func placedPods(client Client, unreached func()) cache.SharedIndexInformer {
	pods := client.Pods(metav1.NamespaceAll)
	asked := func(ctx context.Context, err error) {
		if err != nil && ctx.Err() == nil && !answered(err) {
			unreached()
		}
	}
	from := &cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
			options.FieldSelector = podsWithANode
			list, err := pods.List(ctx, options)
			asked(ctx, err)
			return list, err
		},
		WatchFuncWithContext: func(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
			options.FieldSelector = podsWithANode
			events, err := pods.Watch(ctx, options)
			asked(ctx, err)
			return events, err
		},
	}
	return cache.NewSharedIndexInformer(cache.ToListWatcherWithWatchListSemantics(from, client), &corev1.Pod{}, 0,
		cache.Indexers{indexFunction: indexByFunction})
}

func allNodes(client Client) cache.SharedIndexInformer {
	nodes := client.Nodes()
	from := &cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
			return nodes.List(ctx, options)
		},
		WatchFuncWithContext: nodes.Watch,
	}
	return cache.NewSharedIndexInformer(cache.ToListWatcherWithWatchListSemantics(from, client), &corev1.Node{}, 0, cache.Indexers{})
}

func podHandler(tell podObserver) cache.ResourceEventHandler {
	return cache.ResourceEventHandlerFuncs{
		AddFunc:    func(object any) { tell.podChanged(object.(*corev1.Pod)) },
		UpdateFunc: func(_, object any) { tell.podChanged(object.(*corev1.Pod)) },
		DeleteFunc: func(object any) {
			if pod, ok := lastKnown(object).(*corev1.Pod); ok {
				tell.podGone(pod)
			}
		},
	}
}

func nodeHandler(tell nodeObserver) cache.ResourceEventHandler {
	return cache.ResourceEventHandlerFuncs{
		AddFunc:    func(object any) { tell.nodeChanged(object.(*corev1.Node)) },
		UpdateFunc: func(_, object any) { tell.nodeChanged(object.(*corev1.Node)) },
		DeleteFunc: func(object any) {
			if n, ok := lastKnown(object).(*corev1.Node); ok {
				tell.nodeGone(n.Name)
			}
		},
	}
}

// lastKnown is the last known state of something that was deleted.
func lastKnown(object any) any {
	if unknown, ok := object.(cache.DeletedFinalStateUnknown); ok {
		return unknown.Obj
	}
	return object
}

// run watches until ctx ends.
func (c *cluster) run(ctx context.Context) {
	var informers sync.WaitGroup
	informers.Go(func() { c.pods.RunWithContext(ctx) })
	informers.Go(func() { c.nodes.RunWithContext(ctx) })
	informers.Wait()
}

func (c *cluster) synced() bool {
	for _, hasSynced := range c.hasSynced {
		if !hasSynced() {
			return false
		}
	}
	return true
}

// pod is a pod, or nil if the informer does not know it.
func (c *cluster) pod(key podKey) *corev1.Pod {
	object, exists, err := c.pods.GetIndexer().GetByKey(key.namespace + "/" + key.name)
	if err != nil || !exists {
		return nil
	}
	return object.(*corev1.Pod)
}

// podsOf are the pods with the labels of a function, or of a pool.
func (c *cluster) podsOf(functionUID string) []*corev1.Pod {
	objects, err := c.pods.GetIndexer().ByIndex(indexFunction, functionUID)
	if err != nil {
		// The index was made with the informer.
		panic("kube: " + err.Error())
	}
	pods := make([]*corev1.Pod, len(objects))
	for i, object := range objects {
		pods[i] = object.(*corev1.Pod)
	}
	return pods
}

func indexByFunction(object any) ([]string, error) {
	if pod, ok := object.(*corev1.Pod); ok {
		if uid := functionOf(pod); uid != "" {
			return []string{uid}, nil
		}
	}
	return nil, nil
}

// slim leaves of pods and nodes what this package asks about, so that many cost
// little memory.
func slim(object any) (any, error) {
	switch o := object.(type) {
	case *corev1.Pod:
		return slimPod(o), nil
	case *corev1.Node:
		return slimNode(o), nil
	}
	return object, nil
}

func slimPod(pod *corev1.Pod) *corev1.Pod {
	if functionOf(pod) == "" {
		return slimOther(pod)
	}
	s := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Name: pod.Name, Namespace: pod.Namespace, UID: pod.UID, ResourceVersion: pod.ResourceVersion,
		},
		Spec: corev1.PodSpec{
			NodeName:       pod.Spec.NodeName,
			Overhead:       pod.Spec.Overhead,
			Resources:      pod.Spec.Resources,
			Containers:     slimContainers(pod.Spec.Containers, true),
			InitContainers: slimContainers(pod.Spec.InitContainers, false),
		},
		Status: corev1.PodStatus{Phase: pod.Status.Phase},
	}
	s.Labels, s.OwnerReferences = pod.Labels, pod.OwnerReferences
	s.CreationTimestamp, s.DeletionTimestamp = pod.CreationTimestamp, pod.DeletionTimestamp
	s.DeletionGracePeriodSeconds = pod.DeletionGracePeriodSeconds
	if decided := pod.Annotations[podspec.AnnotationDecided]; decided != "" {
		s.Annotations = map[string]string{podspec.AnnotationDecided: decided}
	}
	s.Status.Reason, s.Status.Message = pod.Status.Reason, pod.Status.Message
	s.Status.Conditions = slimConditions(pod)
	if !hasSandbox(pod) {
		s.Spec.Volumes = slimVolumes(pod.Spec.Volumes)
	}
	for _, c := range pod.Status.ContainerStatuses {
		s.Status.ContainerStatuses = append(s.Status.ContainerStatuses, corev1.ContainerStatus{Name: c.Name, State: c.State})
	}
	return s
}

// slimVolumes are the volumes that need an object which may be missing.
func slimVolumes(volumes []corev1.Volume) (kept []corev1.Volume) {
	for i := range volumes {
		if objectOf(&volumes[i]) != "" {
			kept = append(kept, volumes[i])
		}
	}
	return kept
}

// slimOther keeps only the total requests of a pod that belongs to no function, as one
// container, and whether it is fixed; and nothing of one that has ended.
func slimOther(pod *corev1.Pod) *corev1.Pod {
	s := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Name: pod.Name, Namespace: pod.Namespace, UID: pod.UID, ResourceVersion: pod.ResourceVersion,
		},
		Spec:   corev1.PodSpec{NodeName: pod.Spec.NodeName},
		Status: corev1.PodStatus{Phase: pod.Status.Phase},
	}
	if !finished(pod) {
		if fixed(pod) {
			s.OwnerReferences = fixedOwner
		}
		if counted := countedList(podAmount(pod)); len(counted) > 0 {
			s.Spec.Containers = []corev1.Container{{Resources: corev1.ResourceRequirements{Requests: counted}}}
		}
	}
	return s
}

// fixedOwner is the owner that all slim pods have which are fixed. They share it, so it costs none
// of them memory.
var fixedOwner = []metav1.OwnerReference{{Kind: "DaemonSet", Controller: new(true)}}

// countedList is an amount as a container requests it, but for the pod itself.
func countedList(a placement.Amount) corev1.ResourceList {
	list := make(corev1.ResourceList, 2)
	put := func(name corev1.ResourceName, q *resource.Quantity) {
		if !q.IsZero() {
			list[name] = *q
		}
	}
	put(corev1.ResourceCPU, resource.NewMilliQuantity(a.MilliCPU, resource.DecimalSI))
	put(corev1.ResourceMemory, resource.NewQuantity(a.Memory, resource.BinarySI))
	for name, n := range a.Scalars.Amounts() {
		put(corev1.ResourceName(name), resource.NewQuantity(n, resource.DecimalSI))
	}
	return list
}

// slimConditions keeps why a pod is disrupted, and how far it has come: a pod that is
// ready has its network, so that one condition says both.
func slimConditions(pod *corev1.Pod) []corev1.PodCondition {
	var slimmed []corev1.PodCondition
	for _, c := range pod.Status.Conditions {
		if c.Type == corev1.DisruptionTarget {
			slimmed = append(slimmed, c)
		}
	}
	for _, condition := range []corev1.PodConditionType{corev1.PodReady, corev1.PodReadyToStartContainers} {
		if conditionTrue(pod, condition) {
			return append(slimmed, corev1.PodCondition{Type: condition, Status: corev1.ConditionTrue})
		}
	}
	return slimmed
}

func slimContainers(containers []corev1.Container, ours bool) []corev1.Container {
	if len(containers) == 0 {
		return nil
	}
	slimmed := make([]corev1.Container, len(containers))
	for i, c := range containers {
		slimmed[i].Resources.Requests = c.Resources.Requests
		slimmed[i].RestartPolicy = c.RestartPolicy
		if ours {
			slimmed[i].Name, slimmed[i].Image = c.Name, c.Image
			slimmed[i].Resources.Limits = c.Resources.Limits
		}
	}
	return slimmed
}

func slimNode(n *corev1.Node) *corev1.Node {
	s := &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{
			Name: n.Name, UID: n.UID, ResourceVersion: n.ResourceVersion,
			Labels: n.Labels, DeletionTimestamp: n.DeletionTimestamp,
		},
		Spec:   corev1.NodeSpec{Unschedulable: n.Spec.Unschedulable, Taints: n.Spec.Taints},
		Status: corev1.NodeStatus{Allocatable: n.Status.Allocatable},
	}
	for _, c := range n.Status.Conditions {
		if c.Type == corev1.NodeReady {
			s.Status.Conditions = append(s.Status.Conditions, corev1.NodeCondition{Type: c.Type, Status: c.Status})
		}
	}
	return s
}
