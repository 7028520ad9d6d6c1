// Package reconcile finds differences that a lost event left behind.
//
// Much state is a copy of other state, kept up to date by events: the inventory of instances
// copies the driver's, and the driver's copies the pods of the cluster. A copy that misses an
// event stays wrong until it is compared with the original. Compare does that as a pure function.
// Level says which differences are real: those that two successive comparisons find. A difference
// that only one of them finds belongs to an event that is still on its way.
//
// A caller compares every few seconds, repairs the real differences and counts them. A healthy
// system has none.
package reconcile
