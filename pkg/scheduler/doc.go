// Package scheduler serves the functions in a scheduler's slots. It is the shell around one core
// per function (pkg/scheduler/core) and connects the cores with the catalog, the provisioner,
// gateways and agents.
//
// Invariants:
//
//   - Offer accepts a ticket or refuses it with a reason. If a waiting ticket can no longer
//     be served, the scheduler refuses it as soon as it knows.
//   - A tick never waits for another process.
//   - A core's effects are carried out under the function's lock (step.go).
//   - An instance has one stream, the newest. A silent instance loses its stream, and its
//     unclaimed tickets go to others.
//   - All state is soft: gateways offer tickets again, and instances connect again.
//
// # Calls and ticks
//
// Gateways send tickets by Offer and instances ask for them by Pull; the function's core matches
// them within the function's limits. Every tick observes each function that is not parked,
// launches the instances that its decider asks for, in turns of the namespaces if not all can be
// created, and cancels launches that the decider no longer wants. Between ticks the scheduler
// runs functions that have calls and no instance, and functions whose decider asked to see the
// next call. It measures execution and start times, and restores those that a previous owner
// measured.
//
// A function's minimum comes from its spec, its schedule and its idle times. An idle function
// costs nothing until a timer says that its minimum changes.
//
// # Ownership
//
// While the owner of a slot does not answer, the scheduler that would own the slot next acts as
// its standby: it serves the slot as if it owned it. For all other slots a scheduler forwards
// tickets and redirects instances.
//
// # Room
//
// For a function that has calls, no instance and no room, the scheduler evicts the instance that
// has been idle longest. A function with instances gets room within its namespace, and beyond
// that up to an equal share. If no instance of its own may go, the scheduler asks other
// schedulers with its heartbeats; it makes room for their requests after its own.
//
// # Warm pools
//
// The scheduler keeps its share of the ClusterRuntimes' warm pools, from the launch rate and the
// room that functions leave. A function that needs instances takes ready spare ones of its
// ClusterRuntime first. The agent learns of its assignment after every reader of the cluster
// sees it, and no other function gets that instance. Spare instances get no tickets.
//
// # Reports
//
// The scheduler keeps recent decisions for people: of one function, or the latest of all. It
// exports metrics of queues, decisions, instances, nodes, its slots and itself. It sums up the
// agents' reports by function, and splits starts that it launched itself into phases (package
// coldstart).
package scheduler
