// Package provisioner carries out decisions: it orders instances from a Runtime,
// knows what was ordered and what became of it, and backs off from functions
// whose instances do not start.
//
// The Inventory is the one account of instances: an instance is creating from its order
// until its agent's first pull, then created until it leaves or is lost. What was ordered
// counts from the moment of the order, so that no tick orders it again. Names are made of
// the owner's epoch and a sequence, so that the same order always has the same name. Each
// function has an account with a lock of its own.
//
// A spare instance of a warm pool is an instance of the pool, which is a function
// without calls (see package warmpool). Take turns it into one of a real function.
//
// The Provisioner acts on the Runtime, and follows instances to their end. It promises
// that ordering never waits for the Runtime; that every instance that was ordered is
// reported once as started, failed, lost or gone; and that one that does not start, that
// is silent, or that does not go when it should is stopped. Beside it, NodeView knows the
// nodes, Authenticator the agents, Moves what changed since a reader last looked, and
// Auditor compares the inventory with the level below.
package provisioner
