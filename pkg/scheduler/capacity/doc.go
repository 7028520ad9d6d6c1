// Package capacity decides who gets room on the nodes: which node an instance is placed
// on, for whom room is reserved, which idle instances are evicted for others, what is
// asked of other schedulers and what is lent to them, and in which turns namespaces get
// new instances.
//
// A Planner knows this for one scheduler. Functions hand in what they want (Want) and what
// their instances amount to (Usage), as values. What it decides, the scheduler carries out:
// it orders an instance on the node of Place, and evicts what MakeRoom and Lend ask for,
// which may fail, since an instance may have become busy.
//
// It promises:
//   - No more room is reserved for a function than it lacks.
//   - Room that is reserved is given to nobody else.
//   - An instance is evicted once, and never for its own function.
//   - Of all peers together, no more room is asked for than is lacked.
//
// The cost of a tick does not grow with instances or nodes for each function: nodes are
// read once for all functions that may run in the same places, and which instances may be
// evicted is kept from tick to tick.
//
// Nothing here holds a lock or reads a clock, and nothing is safe for concurrent use.
package capacity
