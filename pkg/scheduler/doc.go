// Package scheduler owns the functions in its slots: it is the shell around one core for
// each (pkg/scheduler/core), and joins them with the catalog, the provisioner, gateways and
// agents.
//
// Gateways send it tickets by Offer and instances ask for them by Pull; the function's
// core matches them, if the function's limits let them in. What a core asks for is carried
// out under the function's lock (step.go). Every tick it looks at
// each function that is not idle and orders the instances that the function's
// decider asks for, in turns of their namespaces as far as not all can be created; and
// it withdraws those of which it asks to be rid before they are there. Between ticks it looks
// at functions that have calls and no instance, and at those whose decider asked to see the
// next call. It learns how long
// calls and starts take, and is told what was learnt before it.
//
// The least of a function is what its spec, its schedule and its idle times ask for. A
// function that is idle costs nothing until an alarm says that this changes.
//
// While the owner of a slot does not answer, and the scheduler is the one to own it
// next, it stands in: it serves the slot as if it owned it. Of slots that it neither
// owns nor stands in for, it passes tickets on and sends instances away.
//
// A function that has calls, no instance and no room gets room: the instance that
// has been idle for longest is let go. One that has some gets it within its namespace, or
// beyond up to an equal share. If nothing of its own may go, other schedulers are asked with
// the beats that they exchange, and what they ask for is made after all that is wanted here.
//
// It keeps its share of the ClusterRuntimes' warm pools, with what functions leave of rate and
// room. A function that needs instances takes ready spare ones of its Runtime first.
// One that is taken is told so once it is the function's for everybody, and nobody else
// gets it; spare instances are handed no tickets.
//
// An instance has one stream, the newest. One that falls silent loses it, and what it
// held unclaimed goes to others.
//
// It keeps what it decided lately, for people who ask why: Account
// of one function, Latest of all that something was decided on.
//
// Metrics are what it tells of queues, decisions, instances, nodes, its slots and itself.
// What agents say of themselves it adds up by function, and how a start went it tells by
// phases (see coldstart), for the starts that it ordered itself.
//
// Everything that it knows is soft: tickets come again from their gateways, and
// instances say hello again. It promises that a ticket which it cannot serve is
// refused with a reason, at once or as soon as that is known, and that a tick
// never waits for anything.
package scheduler
