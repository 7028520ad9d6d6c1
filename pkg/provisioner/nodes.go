package provisioner

import (
	"slices"
	"sync"

	corev1 "k8s.io/api/core/v1"

	"github.com/windlass-dev/windlass/api/v1alpha1"
	"github.com/windlass-dev/windlass/pkg/provisioner/placement"
)

// nodeUsage is what the instances of the inventory come to on each node that has some.
type nodeUsage struct {
	mu sync.Mutex
	on map[string]load
}

// load is how many instances are on a node, and what they request.
type load struct {
	instances int
	requested placement.Amount
}

func newNodeUsage() *nodeUsage { return &nodeUsage{on: make(map[string]load)} }

// add puts an instance on its node.
func (o *nodeUsage) add(node string, requests placement.Amount) {
	o.mu.Lock()
	defer o.mu.Unlock()
	was := o.on[node]
	o.on[node] = load{was.instances + 1, was.requested.Plus(requests)}
}

// subtract takes an instance off its node.
func (o *nodeUsage) subtract(node string, requests placement.Amount) {
	o.mu.Lock()
	defer o.mu.Unlock()
	was := o.on[node]
	if was.instances == 1 {
		delete(o.on, node)
		return
	}
	o.on[node] = load{was.instances - 1, was.requested.Minus(requests)}
}

// fillRequested says of each node what instances have requested of it.
func (o *nodeUsage) fillRequested(nodes []placement.Node) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for i := range nodes {
		nodes[i].Requested = o.on[nodes[i].Name].requested
	}
}

// instances is how many instances are on each node that has some.
func (o *nodeUsage) instances() map[string]int {
	o.mu.Lock()
	defer o.mu.Unlock()
	on := make(map[string]int, len(o.on))
	for node, l := range o.on {
		on[node] = l.instances
	}
	return on
}

// NodeView is what is known of nodes: where instances may run, and what they request
// there.
type NodeView struct {
	config Config
	// driver tells of the nodes, unless they are those of the configuration.
	driver Nodes
	usage  *nodeUsage
}

// Requests is what an instance of a function requests of its node, with its agent. Nodes
// of the configuration say nothing about other resources than CPU and memory.
func (n *NodeView) Requests(fn *v1alpha1.Function) placement.Amount {
	requests := Requests(fn, n.config.AgentRequests)
	if n.driver == nil {
		requests.Scalars = placement.Scalars{}
	}
	return requests
}

// Candidates are the nodes that instances of a function may use, with what is
// requested of each now.
func (n *NodeView) Candidates(fn *v1alpha1.Function) placement.Candidates {
	if n.driver != nil {
		return n.driver.Candidates(fn)
	}
	return placement.Candidates{Nodes: n.configured()}
}

// NodeLoad is how full a node is.
type NodeLoad struct {
	// Node says what it can hold and what is requested of it, as far as it is known.
	placement.Node
	// Instances are those of the inventory.
	Instances int
}

// Nodes are all nodes that are known or have instances.
func (n *NodeView) Nodes() []NodeLoad {
	known, on := n.known(), n.usage.instances()
	loads := make([]NodeLoad, 0, len(known))
	for _, node := range known {
		loads = append(loads, NodeLoad{node, on[node.Name]})
		delete(on, node.Name)
	}
	for name, instances := range on {
		loads = append(loads, NodeLoad{placement.Node{Name: name}, instances})
	}
	return loads
}

func (n *NodeView) known() []placement.Node {
	if n.driver != nil {
		return n.driver.Nodes()
	}
	return n.configured()
}

// configured are the nodes of the configuration, with what is requested of each.
func (n *NodeView) configured() []placement.Node {
	nodes := slices.Clone(n.config.Nodes)
	n.usage.fillRequested(nodes)
	return nodes
}

// Requests is what an instance of a function requests of its node, with an agent that
// requests that much. Nodes are picked and pods are counted by this one sum.
func Requests(fn *v1alpha1.Function, agent placement.Amount) placement.Amount {
	return agent.Plus(AmountOf(fn.Spec.Template.Resources.Requests))
}

// AmountOf is what a list says of CPU, memory, local storage and extended resources.
func AmountOf(list corev1.ResourceList) placement.Amount {
	// Most lists have no more than the first two, and each function is asked in each tick.
	others := len(list)
	var amount placement.Amount
	if cpu, there := list[corev1.ResourceCPU]; there {
		amount.MilliCPU = cpu.MilliValue()
		others--
	}
	if memory, there := list[corev1.ResourceMemory]; there {
		amount.Memory = memory.Value()
		others--
	}
	if others > 0 {
		amount.Scalars = scalarsOf(list)
	}
	return amount
}

func scalarsOf(list corev1.ResourceList) placement.Scalars {
	further := make(map[string]int64)
	for name, q := range list {
		if name == corev1.ResourceEphemeralStorage || v1alpha1.IsExtended(name) {
			further[string(name)] = q.Value()
		}
	}
	return placement.ScalarsOf(further)
}
