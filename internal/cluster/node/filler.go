package node

import (
	"context"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	toolscache "k8s.io/client-go/tools/cache"

	"github.com/windlass-dev/windlass/api/wellknown"
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
		n.log.Warn("pods with the annotation are not put into the low band on this node", "annotation", wellknown.AnnotationClass, "bands", n.tree.String())
		return nil
	}
	client, err := newClient()
	if err != nil {
		return err
	}
	pods := toolscache.NewListWatchFromClient(client, "pods", metav1.NamespaceAll, podsOf(n.config.NodeName))
	n.log.Info("pods with the annotation get what others leave", "annotation", wellknown.AnnotationClass, "namespaces", n.config.BatchNamespaces)
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
		if seen, is := object.(*pod); is {
			fillers.Saw(podFor(seen))
		}
	}
	_, following := toolscache.NewInformerWithOptions(toolscache.InformerOptions{
		ListerWatcher: pods, ObjectType: &pod{}, Transform: slimPod,
		Handler: toolscache.ResourceEventHandlerFuncs{
			AddFunc:    saw,
			UpdateFunc: func(_, object any) { saw(object) },
			DeleteFunc: func(object any) {
				if missed, is := object.(toolscache.DeletedFinalStateUnknown); is {
					object = missed.Obj
				}
				if lost, is := object.(*pod); is {
					fillers.Lost(string(lost.UID))
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
	whole, is := object.(*pod)
	if !is {
		return object, nil
	}
	slim := &pod{ObjectMeta: metav1.ObjectMeta{
		UID: whole.UID, Namespace: whole.Namespace, Name: whole.Name, ResourceVersion: whole.ResourceVersion, Labels: whole.Labels,
	}}
	if class, has := whole.Annotations[wellknown.AnnotationClass]; has {
		slim.Annotations = map[string]string{wellknown.AnnotationClass: class}
	}
	slim.Status = podStatus{Phase: whole.Status.Phase, QOSClass: whole.Status.QOSClass}
	slim.Status.InitContainerStatuses, slim.Status.ContainerStatuses = running(whole.Status.InitContainerStatuses), running(whole.Status.ContainerStatuses)
	return slim, nil
}

// running are the containers that run.
func running(all []containerStatus) (those []containerStatus) {
	for _, s := range all {
		if s.State.Running != nil {
			those = append(those, s)
		}
	}
	return those
}

// podFor is what of a pod decides whether it is filler.
func podFor(p *pod) nodeagent.Pod {
	component := p.Labels[wellknown.LabelComponent]
	of := nodeagent.Pod{
		UID: string(p.UID), Namespace: p.Namespace, Name: p.Name, Class: p.Annotations[wellknown.AnnotationClass],
		Instance:   p.Labels[wellknown.LabelManagedBy] == wellknown.ManagedBy && (component == wellknown.ComponentFunction || component == wellknown.ComponentSpare),
		Guaranteed: p.Status.QOSClass == "Guaranteed",
	}
	ended := p.Status.Phase == "Succeeded" || p.Status.Phase == "Failed"
	of.Runs = !ended && len(running(p.Status.InitContainerStatuses))+len(running(p.Status.ContainerStatuses)) > 0
	return of
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
