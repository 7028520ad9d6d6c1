// Package reconcile finds what a lost event left behind.
//
// Much state is a copy of other state, kept up to date by events: the inventory of
// instances copies the runtime's book, the book copies the pods of the cluster. A copy
// that misses one event is wrong until somebody compares it with the original. Compare
// does, as a pure function, and Level says which differences are real: those that two
// successive looks find. What only one look finds is news that is under way.
//
// A caller looks every few seconds, mends what stands, and counts it. In health nothing
// stands.
package reconcile
