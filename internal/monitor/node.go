package monitor

import (
	"cmp"
	"slices"

	"github.com/windlass-dev/windlass/pkg/invocation"
)

// Node is one machine.
type Node struct {
	Name string `json:"name"`
	// Instances is the number of instances that the schedulers know there.
	Instances int `json:"instances"`
	// Requested is the requested share of the node's capacity by resource: cpu and memory.
	Requested map[string]float64 `json:"requested,omitempty"`
	// Order is what its node agent says; nil if the node has none, or it does not answer.
	Order *NodeOrder `json:"order,omitempty"`
}

// NodeOrder is how a node orders calls.
type NodeOrder struct {
	// Busy says that more threads want to run than the node has cores, so that calls need core
	// tickets.
	Busy bool `json:"busy"`
	// Cores is how many tickets there are, Holding how many calls have one, and Waiting how many
	// calls wait for one.
	Cores   int `json:"cores"`
	Holding int `json:"holding"`
	Waiting int `json:"waiting"`
	// Low is how many instances get what others leave of the cores.
	Low int `json:"low"`
	// Batch is the batch work of the node; nil if it has none.
	Batch *NodeBatch `json:"batch,omitempty"`
}

// NodeBatch is work that gets what others leave: instances of class Batch, and pods that are filler.
type NodeBatch struct {
	// Cores is how many cores it uses, over the interval of the View.
	Cores float64 `json:"cores"`
	// CoLocated says that it may be kept back for latency-critical work beside it: Frozen is how many
	// instances are frozen, and Reserved on how many cores it may not run.
	CoLocated bool `json:"coLocated"`
	Frozen    int  `json:"frozen"`
	Reserved  int  `json:"reserved"`
}

// Mode is busy or calm.
func (o *NodeOrder) Mode() string {
	if o.Busy {
		return "busy"
	}
	return "calm"
}

// nodeFigures are the data of one process about a node.
type nodeFigures struct {
	Node
	// held is what is kept back there, which matters only beside batch work.
	held NodeBatch
	// batch is the processor time of batch work so far, by function or namespace.
	batch map[invocation.FunctionKey]float64
}

func (s *source) node(name string) *nodeFigures {
	name = Printable(name)
	n := s.nodes[name]
	if n == nil {
		n = &nodeFigures{Node: Node{Name: name}, batch: make(map[invocation.FunctionKey]float64)}
		s.nodes[name] = n
	}
	return n
}

// nodeReaders are by the names of the families that say something of nodes.
var nodeReaders = map[string]func(*nodeFigures, metric){
	"windlass_scheduler_node_instances": func(n *nodeFigures, m metric) { n.Instances += int(m.value) },
	"windlass_scheduler_node_requested_ratio": func(n *nodeFigures, m metric) {
		n.request(Printable(m.labels["resource"]), m.value)
	},

	"windlass_node_busy":          func(n *nodeFigures, m metric) { n.order().Busy = m.value > 0 },
	"windlass_node_cores":         func(n *nodeFigures, m metric) { n.order().Cores = int(m.value) },
	"windlass_node_low_instances": func(n *nodeFigures, m metric) { n.order().Low = int(m.value) },
	"windlass_node_calls": func(n *nodeFigures, m metric) {
		switch m.labels["state"] {
		case "holding":
			n.order().Holding = int(m.value)
		case "waiting":
			n.order().Waiting = int(m.value)
		}
	},

	"windlass_node_colocation":       func(n *nodeFigures, m metric) { n.held.CoLocated = m.value > 0 },
	"windlass_node_frozen_instances": func(n *nodeFigures, m metric) { n.held.Frozen = int(m.value) },
	"windlass_node_reserved_cores":   func(n *nodeFigures, m metric) { n.held.Reserved = int(m.value) },
	"windlass_node_batch_cpu_seconds_total": func(n *nodeFigures, m metric) {
		n.batch[invocation.FunctionKey{Namespace: m.labels["function_namespace"], Name: m.labels["function"]}] = m.value
	},
}

// order is what the node's own agent says of it.
func (n *Node) order() *NodeOrder {
	if n.Order == nil {
		n.Order = &NodeOrder{}
	}
	return n.Order
}

// request takes the largest share that anyone tells: all look at the same node.
func (n *Node) request(resource string, share float64) {
	if n.Requested == nil {
		n.Requested = make(map[string]float64)
	}
	n.Requested[resource] = max(n.Requested[resource], share)
}

func (n *Node) add(more *Node) {
	n.Instances += more.Instances
	n.Order = cmp.Or(n.Order, more.Order)
	for resource, share := range more.Requested {
		n.request(resource, share)
	}
}

// nodes are the nodes that anyone tells of, in the order of their names.
func (w *Watcher) nodes(s Sample, since int, over float64) []Node {
	all := make(map[string]*Node)
	for _, src := range s.sources {
		for name, n := range src.nodes {
			if all[name] == nil {
				all[name] = &Node{Name: name}
			}
			told := n.Node
			if len(n.batch) > 0 && told.Order != nil {
				order, batch := *told.Order, n.held
				batch.Cores = w.batchCores(name, since, over)
				order.Batch, told.Order = &batch, &order
			}
			all[name].add(&told)
		}
	}
	nodes := make([]Node, 0, len(all))
	for _, n := range all {
		nodes = append(nodes, *n)
	}
	slices.SortFunc(nodes, func(a, b Node) int { return cmp.Compare(a.Name, b.Name) })
	return nodes
}

// batchUsed is the processor time that batch work of each node has used from one Sample to the next, by
// the last intervals. Work that counts less than before is counted by another node agent.
func (w *Watcher) batchUsed(before, after Sample) map[string][]float64 {
	used := make(map[string][]float64)
	for name, src := range after.sources {
		old := before.sources[name]
		if old == nil || !src.at.After(old.at) {
			continue // as in changes
		}
		shares := w.shares(src.at.Sub(old.at))
		for node, n := range src.nodes {
			for work, now := range n.batch {
				was := 0.0
				if o := old.nodes[node]; o != nil && o.batch[work] <= now {
					was = o.batch[work]
				}
				for len(used[node]) < len(shares) {
					used[node] = append([]float64{0}, used[node]...)
				}
				for i, share := range shares {
					used[node][len(used[node])-len(shares)+i] += (now - was) * share
				}
			}
		}
	}
	return used
}

// rememberBatch takes down what batch work has used lately, and forgets nodes on which there was none in
// any interval.
func (w *Watcher) rememberBatch(used map[string][]float64) {
	if w.batch == nil {
		w.batch = make(map[string][]float64)
	}
	for node := range used {
		if w.batch[node] == nil {
			w.batch[node] = make([]float64, 0, memory)
		}
	}
	for node, intervals := range w.batch {
		for len(intervals) < len(w.lengths)-1 {
			intervals = append(intervals, 0)
		}
		intervals = append(intervals, 0)
		intervals = intervals[len(intervals)-len(w.lengths):]
		for i, n := range used[node] {
			intervals[len(intervals)-len(used[node])+i] += n
		}
		w.batch[node] = intervals
		if !slices.ContainsFunc(w.batch[node], func(used float64) bool { return used > 0 }) {
			delete(w.batch, node)
		}
	}
}

// batchCores is how many cores batch work of a node used in the intervals since one.
func (w *Watcher) batchCores(node string, since int, over float64) float64 {
	intervals := w.batch[node]
	if len(intervals) == 0 || over <= 0 {
		return 0
	}
	sum := 0.0
	for _, used := range intervals[since:] {
		sum += used
	}
	return sum / over
}
