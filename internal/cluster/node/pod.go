package node

import (
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// pod is what a node agent reads of a Pod. The type of Kubernetes brings all others of its API with it, and they would be
// in the memory of every node.
type pod struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`
	Status            podStatus `json:"status"`
}

type podStatus struct {
	Phase                 string            `json:"phase"`
	QOSClass              string            `json:"qosClass"`
	InitContainerStatuses []containerStatus `json:"initContainerStatuses"`
	ContainerStatuses     []containerStatus `json:"containerStatuses"`
}

type containerStatus struct {
	State struct {
		Running *struct{} `json:"running"`
	} `json:"state"`
}

type podList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata"`
	Items           []pod `json:"items"`
}

// DeepCopyObject implements runtime.Object.
func (p *pod) DeepCopyObject() runtime.Object { return p.copied() }

func (p *pod) copied() *pod {
	c := &pod{TypeMeta: p.TypeMeta, ObjectMeta: *p.ObjectMeta.DeepCopy(), Status: p.Status}
	c.Status.InitContainerStatuses = slices.Clone(p.Status.InitContainerStatuses)
	c.Status.ContainerStatuses = slices.Clone(p.Status.ContainerStatuses)
	return c
}

// DeepCopyObject implements runtime.Object.
func (l *podList) DeepCopyObject() runtime.Object {
	c := &podList{TypeMeta: l.TypeMeta, ListMeta: *l.ListMeta.DeepCopy()}
	for i := range l.Items {
		c.Items = append(c.Items, *l.Items[i].copied())
	}
	return c
}
