// Package cluster simulates provisioning in virtual time: functions that are called, a scheduler
// that decides how many instances they have, and machines on which these run. It shows what a
// decision costs and what it gains; test/simulate/sim shows what faults do.
//
// All decisions are the product's own code, with its own constants: the core of each function
// (package scheduler/core), with the queue, admission, the deciders and their bounds, the
// estimates and the floor; the planner across functions (package capacity), with room,
// reservations, evictions and shares; and the placement on nodes. The shell here (type scheduler)
// replaces package scheduler: it feeds the cores events and carries out their effects, in virtual
// time. It skips ticks that have nothing to do. Instances ask to leave as the agent does.
//
// With Config.Gateways calls come to gateways, and instances lend them their pulls. The cores of
// gateways (package gateway/core) and agents (package podagent/core) then decide, too. Their shells
// here (types gatewayEnd and agentEnd) pass messages, which take a constant time and are never
// lost, so that audits are left out. Claims, whose rule is that a call is granted as long as it
// waits, and the load of a gateway's processor are models. One queue at the scheduler, to which
// all calls come, is what the paper describes.
//
// A simulation is a Config, a value, from which Run makes a Result, another value. It is a heap of
// events, without goroutines or a clock. Randomness comes from one seed, in separate streams for
// works, starts, placements and each load, so that the draws of one policy do not change what
// another one meets. The same Config always has the same Result.
//
// The models, and what they leave out:
//
//   - A call takes its work on an instance, plus Overheads, which are constants. The control
//     plane has no limit of operations per second.
//   - An instance takes Function.Start from its launch to its first pull, longer where
//     Nodes.Starts makes starts take turns. No start fails, and no instance or machine breaks
//     down. An instance that leaves or is cancelled is gone at once, and its place is free.
//   - Calls on a machine do not slow each other down, unless it has a Capacity. Then they share
//     each resource in proportion to their demand: if the demand is k times the capacity, each
//     call that needs the resource runs at 1/k of its speed, and one that needs several at the
//     slowest of them. Undemanded resources cost nothing: the model knows neither thrashing nor
//     the cost of sharing itself.
//   - On a machine with an Order calls ask for a core before they begin, once they have an instance:
//     the product's core (package callorder) decides. The machine counts as busy all the time, and
//     messages to its node agent take no time. Calls in the low band share what the others leave.
//   - Loads call regardless of the results; clients wait for their answers. Both produce one
//     call after the other, so that a day of a million functions is never in memory. A function
//     that was never called takes the room of a pointer, and a parked one costs no time.
//
// Config.Hash replaces pulling by what it is compared with, package hashsch, on the same machines,
// under the same loads: calls are pushed, and a container starts within the call that needs it.
package cluster
