package provisioner

import (
	"slices"
	"sync"

	corev1 "k8s.io/api/core/v1"

	"github.com/windlass-dev/windlass/api/v1alpha1"
	"github.com/windlass-dev/windlass/pkg/provisioner/placement"
)

// nodeUsage sums up the inventory's instances on each node.
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

func (u *nodeUsage) add(node string, requests placement.Amount) {
	u.mu.Lock()
	defer u.mu.Unlock()
	was := u.on[node]
	u.on[node] = load{was.instances + 1, was.requested.Plus(requests)}
}

func (u *nodeUsage) subtract(node string, requests placement.Amount) {
	u.mu.Lock()
	defer u.mu.Unlock()
	was := u.on[node]
	if was.instances == 1 {
		delete(u.on, node)
		return
	}
	u.on[node] = load{was.instances - 1, was.requested.Minus(requests)}
}

// fillRequested sets each node's requests to those of its instances.
func (u *nodeUsage) fillRequested(nodes []placement.Node) {
	u.mu.Lock()
	defer u.mu.Unlock()
	for i := range nodes {
		nodes[i].Requested = u.on[nodes[i].Name].requested
	}
}

// instances is the number of instances on each node that has some.
func (u *nodeUsage) instances() map[string]int {
	u.mu.Lock()
	defer u.mu.Unlock()
	on := make(map[string]int, len(u.on))
	for node, l := range u.on {
		on[node] = l.instances
	}
	return on
}

// NodeView returns the nodes on which instances may run, and the requests there.
type NodeView struct {
	config Config
	// driver returns the nodes; nil if the configuration has them.
	driver Nodes
	usage  *nodeUsage
}

// Requests is the sum of the requests of a function's instance and its agent. Nodes of the
// configuration have no resources but CPU and memory.
func (n *NodeView) Requests(fn *v1alpha1.Function) placement.Amount {
	requests := Requests(fn, n.config.AgentRequests)
	if n.driver == nil {
		requests.Scalars = placement.Scalars{}
	}
	return requests
}

// Candidates are the nodes that instances of a function may use, with the present requests on
// each.
func (n *NodeView) Candidates(fn *v1alpha1.Function) placement.Candidates {
	if n.driver != nil {
		return n.driver.Candidates(fn)
	}
	return placement.Candidates{Nodes: n.configured()}
}

// NodeLoad is the load of a node.
type NodeLoad struct {
	// Node has its capacity and requests, as far as known.
	placement.Node
	// Instances is the number of the inventory's instances on it.
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

// configured are the nodes of the configuration, with the requests on each.
func (n *NodeView) configured() []placement.Node {
	nodes := slices.Clone(n.config.Nodes)
	n.usage.fillRequested(nodes)
	return nodes
}

// Requests is the sum of the requests of a function's instance and of an agent. Placement and
// the accounting of pods both use it.
func Requests(fn *v1alpha1.Function, agent placement.Amount) placement.Amount {
	return agent.Plus(AmountOf(fn.Spec.Template.Resources.Requests))
}

// AmountOf reads CPU, memory, local storage and extended resources from a list.
func AmountOf(list corev1.ResourceList) placement.Amount {
	// Most lists have only the first two, and every tick reads the list of each function.
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
