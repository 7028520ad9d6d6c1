package provisioner

import (
	"slices"

	"github.com/windlass-dev/windlass/pkg/provisioner/nodepick"
)

// occupancy is how many instances are on a node, and what they request.
type occupancy struct {
	instances int
	requested nodepick.Amount
}

// occupy puts an instance on its node.
func (v *Inventory) occupy(in *Instance) {
	on := v.nodes[in.Node]
	v.nodes[in.Node] = occupancy{on.instances + 1, on.requested.Plus(in.Requests)}
}

// vacate takes an instance off its node.
func (v *Inventory) vacate(in *Instance) {
	on := v.nodes[in.Node]
	if on.instances == 1 {
		delete(v.nodes, in.Node)
		return
	}
	v.nodes[in.Node] = occupancy{on.instances - 1, on.requested.Minus(in.Requests)}
}

// Requested is what instances have requested of a node.
func (v *Inventory) Requested(node string) nodepick.Amount { return v.nodes[node].requested }

// On is how many instances are on each node that has some.
func (v *Inventory) On() map[string]int {
	on := make(map[string]int, len(v.nodes))
	for node, o := range v.nodes {
		on[node] = o.instances
	}
	return on
}

// NodeLoad is how full a node is.
type NodeLoad struct {
	// Node says what it can hold and what is requested of it, as far as it is known.
	nodepick.Node
	// Instances are those of the inventory.
	Instances int
}

// Nodes are all nodes that are known or have instances.
func (p *Provisioner) Nodes() []NodeLoad {
	known := p.nodes()
	if p.deps.Nodes != nil {
		known = p.deps.Nodes.Nodes()
	}
	p.mu.Lock()
	on := p.inventory.On()
	p.mu.Unlock()
	loads := make([]NodeLoad, 0, len(known))
	for _, n := range known {
		loads = append(loads, NodeLoad{n, on[n.Name]})
		delete(on, n.Name)
	}
	for name, instances := range on {
		loads = append(loads, NodeLoad{nodepick.Node{Name: name}, instances})
	}
	return loads
}

// nodes are those of the configuration, with what is requested of each.
func (p *Provisioner) nodes() []nodepick.Node {
	p.mu.Lock()
	defer p.mu.Unlock()
	nodes := slices.Clone(p.config.Nodes)
	for i := range nodes {
		nodes[i].Requested = p.inventory.Requested(nodes[i].Name)
	}
	return nodes
}
