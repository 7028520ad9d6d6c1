// Package controller keeps the status of Functions in Kubernetes up to date and cleans up after
// their instances.
//
// Invariants:
//
//   - It starts no instances and takes no part in any call: while it is away, everything
//     that runs continues.
//   - A plan follows from the present state alone, so that a controller that starts, or takes
//     over from another, needs no memory.
//   - Repeating any write does no harm.
//   - It is the only writer of the statuses of Functions and FunctionRevisions.
//
// The controller makes the FunctionRevisions of a Function and derives both statuses from the
// decisions of pkg/rollout and from the schedulers' reports. A finalizer holds a Function that is
// being deleted until its instances have ended. The controller deletes pods whose agent has
// ended and spare ones whose scheduler is gone, keeps a NetworkPolicy in every namespace with
// Functions, and installs its configured ClusterRuntimes.
//
// plan, a function of values, decides what to do with a Function. The reconciler reads these
// values and carries the plan out.
package controller
