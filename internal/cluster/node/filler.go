package node

import (
	"context"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	toolscache "k8s.io/client-go/tools/cache"

	"github.com/windlass-dev/windlass/api/v1alpha1"
	"github.com/windlass-dev/windlass/pkg/nodeagent"
	"github.com/windlass-dev/windlass/pkg/nodeagent/cgroups"
)

// fillerRetry is how often pods are tried again whose group could not be opened.
const fillerRetry = 5 * time.Second

// startFillers follows the pods of this node, and puts those into the low band that ask for it.
func (n *nodeRole) startFillers(agent *nodeagent.Agent) error {
	if len(n.config.BatchNamespaces) == 0 {
		return nil
	}
	if !n.tree.Bands() {
		n.log.Warn("pods with the annotation are not put into the low band on this node", "annotation", v1alpha1.AnnotationClass, "bands", n.tree.String())
		return nil
	}
	client, err := newClient()
	if err != nil {
		return err
	}
	pods := toolscache.NewListWatchFromClient(client, "pods", metav1.NamespaceAll, podsOf(n.config.NodeName))
	n.log.Info("pods with the annotation get what others leave", "annotation", v1alpha1.AnnotationClass, "namespaces", n.config.BatchNamespaces)
	groups := fillerGroups{n.tree, n.journal}
	fillers := nodeagent.NewFillers(agent, n.config.BatchNamespaces, groups.open, n.log)
	n.parts.Start("filler", func(ctx context.Context) error { return followPods(ctx, pods, fillers) })
	return nil
}

// podsOf selects the pods of one node.
func podsOf(node string) fields.Selector { return fields.OneTermEqualSelector("spec.nodeName", node) }

// followPods tells fillers of pods until ctx ends.
func followPods(ctx context.Context, pods toolscache.ListerWatcher, fillers *nodeagent.Fillers) error {
	saw := func(object any) {
		if pod, is := object.(*corev1.Pod); is {
			fillers.Saw(podFor(pod))
		}
	}
	_, following := toolscache.NewInformerWithOptions(toolscache.InformerOptions{
		ListerWatcher: pods, ObjectType: &corev1.Pod{}, Transform: slimPod,
		Handler: toolscache.ResourceEventHandlerFuncs{
			AddFunc:    saw,
			UpdateFunc: func(_, object any) { saw(object) },
			DeleteFunc: func(object any) {
				if missed, is := object.(toolscache.DeletedFinalStateUnknown); is {
					object = missed.Obj
				}
				if pod, is := object.(*corev1.Pod); is {
					fillers.Lost(string(pod.UID))
				}
			},
		},
	})
	again := time.NewTicker(fillerRetry)
	defer again.Stop()
	followed := make(chan struct{})
	go func() {
		defer close(followed)
		following.Run(ctx.Done())
	}()
	for {
		select {
		case <-followed:
			return nil
		case <-again.C:
			fillers.Retry()
		}
	}
}

// slimPod leaves out what podFor does not ask for, so that a node agent's memory does not grow with what
// pods say of themselves.
func slimPod(object any) (any, error) {
	pod, is := object.(*corev1.Pod)
	if !is {
		return object, nil
	}
	slim := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{
		UID: pod.UID, Namespace: pod.Namespace, Name: pod.Name, ResourceVersion: pod.ResourceVersion, Labels: pod.Labels,
	}}
	if class, has := pod.Annotations[v1alpha1.AnnotationClass]; has {
		slim.Annotations = map[string]string{v1alpha1.AnnotationClass: class}
	}
	slim.Status.Phase, slim.Status.QOSClass = pod.Status.Phase, pod.Status.QOSClass
	slim.Status.InitContainerStatuses, slim.Status.ContainerStatuses = slimStatuses(pod.Status.InitContainerStatuses), slimStatuses(pod.Status.ContainerStatuses)
	return slim, nil
}

func slimStatuses(all []corev1.ContainerStatus) (slim []corev1.ContainerStatus) {
	for _, s := range all {
		if s.State.Running != nil {
			slim = append(slim, corev1.ContainerStatus{ContainerID: s.ContainerID, State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}})
		}
	}
	return slim
}

// podFor is what of a pod decides whether it is filler.
func podFor(pod *corev1.Pod) nodeagent.Pod {
	component := pod.Labels[v1alpha1.LabelComponent]
	p := nodeagent.Pod{
		UID: string(pod.UID), Namespace: pod.Namespace, Name: pod.Name, Class: pod.Annotations[v1alpha1.AnnotationClass],
		Instance:   pod.Labels[v1alpha1.LabelManagedBy] == v1alpha1.ManagedBy && (component == v1alpha1.ComponentFunction || component == v1alpha1.ComponentSpare),
		Guaranteed: pod.Status.QOSClass == corev1.PodQOSGuaranteed,
	}
	if pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed {
		return p
	}
	for _, s := range slices.Concat(pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses) {
		if s.State.Running != nil {
			p.Running = append(p.Running, s.ContainerID)
		}
	}
	return p
}

// fillerGroups opens the groups of pods that are filler.
type fillerGroups struct {
	tree    *cgroups.Tree
	journal *cgroups.Journal
}

func (g fillerGroups) open(p nodeagent.Pod) (nodeagent.Instance, error) {
	folder, err := g.tree.FindPod(p.UID)
	if err != nil {
		return nodeagent.Instance{}, err
	}
	group, err := g.tree.Open(folder, g.journal)
	if err != nil {
		return nodeagent.Instance{}, fmt.Errorf("its control group cannot be opened: %w", err)
	}
	return nodeagent.Instance{
		Namespace: p.Namespace, Name: p.Name, Key: p.UID, Group: group,
		// 0: no agent says in which container it is, so nothing in the pod can be frozen.
		OpenHold: func() (nodeagent.Hold, error) { return g.tree.OpenHold(folder, 0, g.journal) },
	}, nil
}
