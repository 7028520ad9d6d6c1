package kube

import (
	"fmt"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/component-helpers/resource"
	schedcorev1 "k8s.io/component-helpers/scheduling/corev1"
	"k8s.io/klog/v2"

	"github.com/windlass-dev/windlass/api/v1alpha1"
	"github.com/windlass-dev/windlass/pkg/provisioner"
	"github.com/windlass-dev/windlass/pkg/provisioner/placement"
)

// podKey names a pod.
type podKey struct{ namespace, name string }

func keyOf(pod *corev1.Pod) podKey { return podKey{pod.Namespace, pod.Name} }

// resourceCache sums up the requests on each node. It is safe for concurrent use.
type resourceCache struct {
	mu    sync.Mutex
	nodes map[string]*node
	// list are the existing nodes, in no order.
	list []*node
	pods map[podKey]podUsage
}

// podUsage is what one pod requests.
type podUsage struct {
	node   *node
	amount placement.Amount
	// fixed says that the pod stays as long as its node.
	fixed bool
	// assumed says that the informer has not shown the pod yet.
	assumed bool
}

// node is a node, or the name of an unknown one that has pods.
type node struct {
	placement.Node
	// at is the node's place in the list, -1 if it is not known.
	at     int
	pods   int
	labels map[string]string
	ready  bool
	// refuses says why it takes no pod at all; empty if it may.
	refuses string
	taints  []taint
	// avoidUntil is until when it is avoided.
	avoidUntil time.Time
	// rejected are by how much the last pods that it had no room for had outgrown their
	// instances, by function.
	rejected map[string]rejection
}

// rejection is what a pod that a node had no room for requests beyond its instance, and until when
// it counts.
type rejection struct {
	surplus placement.Amount
	until   time.Time
}

// taint is a taint that keeps pods away, with its text for people.
type taint struct {
	taint  corev1.Taint
	reason string
}

func newResourceCache() *resourceCache {
	return &resourceCache{nodes: make(map[string]*node), pods: make(map[podKey]podUsage)}
}

// setPod counts a pod that exists as it is now.
func (l *resourceCache) setPod(pod *corev1.Pod) {
	if pod.Spec.NodeName == "" || finished(pod) {
		l.removePod(keyOf(pod))
		return
	}
	usage := podUsage{amount: podAmount(pod), fixed: fixed(pod)}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.replace(keyOf(pod), pod.Spec.NodeName, usage)
}

// assume counts a pod that is about to be created.
func (l *resourceCache) assume(key podKey, node string, amount placement.Amount) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.replace(key, node, podUsage{amount: amount, assumed: true})
}

// confirm corrects what a pod requests, which the API may have changed, if the
// informer has not shown it yet.
func (l *resourceCache) confirm(pod *corev1.Pod) {
	amount := podAmount(pod)
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.pods[keyOf(pod)].assumed {
		l.replace(keyOf(pod), pod.Spec.NodeName, podUsage{amount: amount, assumed: true})
	}
}

// dropAssumed removes a pod that was assumed and has not been seen.
func (l *resourceCache) dropAssumed(key podKey) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.pods[key].assumed {
		l.subtract(key)
	}
}

func (l *resourceCache) removePod(key podKey) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.subtract(key)
}

// replace counts a pod as c from now on. The caller holds the lock.
func (l *resourceCache) replace(key podKey, name string, c podUsage) {
	l.subtract(key)
	c.node = l.nodeOf(name)
	c.node.Requested = c.node.Requested.Plus(c.amount)
	if c.fixed {
		c.node.Fixed = c.node.Fixed.Plus(c.amount)
	}
	c.node.pods++
	l.pods[key] = c
}

// subtract counts a pod no more. The caller holds the lock.
func (l *resourceCache) subtract(key podKey) {
	c, counted := l.pods[key]
	if !counted {
		return
	}
	delete(l.pods, key)
	c.node.Requested = c.node.Requested.Minus(c.amount)
	if c.fixed {
		c.node.Fixed = c.node.Fixed.Minus(c.amount)
	}
	c.node.pods--
	l.removeIfUnused(c.node)
}

func (l *resourceCache) nodeOf(name string) *node {
	n := l.nodes[name]
	if n == nil {
		n = &node{Node: placement.Node{Name: name}, at: -1}
		l.nodes[name] = n
	}
	return n
}

// removeIfUnused removes a node that does not exist and has no pods.
func (l *resourceCache) removeIfUnused(n *node) {
	if n.at < 0 && n.pods == 0 {
		delete(l.nodes, n.Name)
	}
}

// setNode updates a node, and reports whether its readiness changed.
func (l *resourceCache) setNode(n *corev1.Node) (changed bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	known := l.nodeOf(n.Name)
	if known.at < 0 {
		known.at = len(l.list)
		l.list = append(l.list, known)
	}
	known.Allocatable = provisioner.AmountOf(n.Status.Allocatable)
	known.Allocatable.Pods = n.Status.Allocatable.Pods().Value()
	known.labels = n.Labels
	known.taints = known.taints[:0:0]
	for _, t := range n.Spec.Taints {
		if t.Effect == corev1.TaintEffectNoSchedule || t.Effect == corev1.TaintEffectNoExecute {
			known.taints = append(known.taints, taint{t, fmt.Sprintf("with the taint %s, which the function does not tolerate", t.ToString())})
		}
	}
	was := known.ready
	known.ready, known.refuses = readiness(n)
	return was != known.ready
}

func (l *resourceCache) removeNode(name string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	n := l.nodes[name]
	if n == nil || n.at < 0 {
		return
	}
	last := l.list[len(l.list)-1]
	l.list[n.at], last.at = last, n.at
	l.list = l.list[:len(l.list)-1]
	n.at = -1
	l.removeIfUnused(n)
}

// ready reports whether a node is ready; an unknown one counts as ready.
func (l *resourceCache) ready(name string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	n := l.nodes[name]
	return n == nil || n.at < 0 || n.ready
}

// avoid makes other nodes be preferred for a while.
func (l *resourceCache) avoid(name string, until time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if n := l.nodes[name]; n != nil && n.at >= 0 {
		n.avoidUntil = until
	}
}

// reject counts for a while by how much the pod of a function that a node had no room for has
// outgrown its instance: the next one needs as much besides what its node is chosen by.
func (l *resourceCache) reject(name, functionUID string, surplus placement.Amount, until time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	n := l.nodes[name]
	if n == nil || n.at < 0 {
		return
	}
	if n.rejected == nil {
		n.rejected = make(map[string]rejection)
	}
	n.rejected[functionUID] = rejection{surplus, until}
}

// candidate is the node as one that has what the pods that it rejected a moment ago needed besides.
func (n *node) candidate(now time.Time) placement.Node {
	c := n.Node
	for uid, r := range n.rejected {
		if now.Before(r.until) {
			c.Requested = c.Requested.Plus(r.surplus)
		} else {
			delete(n.rejected, uid)
		}
	}
	return c
}

// allNodes are the nodes that exist.
func (l *resourceCache) allNodes() []placement.Node {
	l.mu.Lock()
	defer l.mu.Unlock()
	nodes := make([]placement.Node, len(l.list))
	for i, n := range l.list {
		nodes[i] = n.Node
	}
	return nodes
}

// candidates are the nodes that pods of a function may use.
func (l *resourceCache) candidates(fn *v1alpha1.Function, now time.Time) placement.Candidates {
	l.mu.Lock()
	defer l.mu.Unlock()
	c := placement.Candidates{Nodes: make([]placement.Node, 0, len(l.list)), Excluded: make(placement.ReasonCounts)}
	for _, n := range l.list {
		switch reason := n.rejects(fn); {
		case reason != "":
			c.Excluded[reason]++
		case now.Before(n.avoidUntil):
			c.Avoided = append(c.Avoided, n.candidate(now))
		default:
			c.Nodes = append(c.Nodes, n.candidate(now))
		}
	}
	return c
}

// rejects says why pods of a function may not run on the node, regardless of room, as text
// that follows a number of nodes.
func (n *node) rejects(fn *v1alpha1.Function) string {
	if n.refuses != "" {
		return n.refuses
	}
	if len(fn.Spec.Template.Placement.NodeSelector) > 0 {
		if label := missingLabel(n.labels, fn.Spec.Template.Placement.NodeSelector); label != "" {
			return "without the label " + label
		}
	}
	for i := range n.taints {
		if !schedcorev1.TolerationsTolerateTaint(klog.Logger{}, fn.Spec.Template.Placement.Tolerations, &n.taints[i].taint, false) {
			return n.taints[i].reason
		}
	}
	return ""
}

// missingLabel is the first label of a selector that the labels lack.
func missingLabel(labels, selector map[string]string) string {
	missing := ""
	for key, value := range selector {
		has, there := labels[key]
		if label := key + "=" + value; (!there || has != value) && (missing == "" || label < missing) {
			missing = label
		}
	}
	return missing
}

// readiness says whether a node is ready, and why it takes no pods.
func readiness(n *corev1.Node) (ready bool, refuses string) {
	for i := range n.Status.Conditions {
		if c := &n.Status.Conditions[i]; c.Type == corev1.NodeReady {
			ready = c.Status == corev1.ConditionTrue
		}
	}
	switch {
	case n.DeletionTimestamp != nil:
		return ready, "being removed"
	case !ready:
		return false, "not ready"
	case n.Spec.Unschedulable:
		return true, "cordoned"
	}
	return true, ""
}

// podAmount is what a pod requests, counted as the Kubernetes scheduler does.
func podAmount(pod *corev1.Pod) placement.Amount {
	a := provisioner.AmountOf(resource.PodRequests(pod, resource.PodResourcesOptions{}))
	a.Pods = 1
	return a
}

// fixed says that a pod stays as long as its node: it is of a DaemonSet, or the mirror of a static
// pod, which its Node owns.
func fixed(pod *corev1.Pod) bool {
	owner := metav1.GetControllerOfNoCopy(pod)
	return owner != nil && (owner.Kind == "DaemonSet" || owner.Kind == "Node")
}

// finished says that a pod has ended and requests nothing any more.
func finished(pod *corev1.Pod) bool {
	return pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed
}
