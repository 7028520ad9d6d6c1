// Package capacity decides who gets room on the nodes: which node an instance is placed on,
// which function room is reserved for, which idle instances are evicted, what the scheduler
// borrows from and lends to others, and in which turns namespaces get new instances.
//
// Invariants:
//
//   - A function's reservations never exceed its shortage.
//   - Only the function that it is for uses reserved room.
//   - An instance is evicted once, and never for its own function.
//   - The room requested from all peers together never exceeds the shortage.
//
// A Planner plans for one scheduler. Functions pass in the room that they want (Want) and the
// use of their instances (Usage) as values. The scheduler carries out the decisions: it launches
// an instance on the node that Place returns, and evicts the instances that MakeRoom and Lend
// name. An eviction may fail, because the instance may have become busy.
//
// The cost of a tick does not grow with instances or nodes for each function: nodes are read
// once for all functions that may run in the same places, and the set of evictable instances is
// kept from tick to tick.
//
// Nothing here holds a lock or reads a clock, and nothing is safe for concurrent use.
package capacity
