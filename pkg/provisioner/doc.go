// Package provisioner carries out decisions: it orders instances from a Runtime,
// knows what was ordered and what became of it, and backs off from functions
// whose instances do not start.
//
// The Inventory is the one account of instances, a pure value: an instance is
// creating from its order until its agent's first pull, then created until it
// leaves or is lost. What was ordered counts from the moment of the order, so
// that no tick orders it again. Names are made of the owner's epoch and a
// sequence, so that the same order always has the same name.
//
// A spare instance of a warm pool is an instance of the pool, which is a function
// without calls (see package spare). Take turns it into one of a real function.
//
// The Provisioner is the shell around it: one lock, the Runtime, and the end of
// instances. It promises that ordering never waits for the Runtime; that every
// instance that was ordered is reported once as started, failed, lost or gone;
// and that one that does not start, that is silent, or that does not go when it
// should is stopped.
package provisioner
