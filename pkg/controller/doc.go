// Package controller keeps what Kubernetes shows of Functions true, and tidies
// up behind their instances.
//
// It makes the FunctionRevisions of a Function, and is the only writer of the statuses of
// both, which it derives from what pkg/rollout decides and the schedulers tell over the
// wire. It holds a Function that is being deleted by
// a finalizer until its instances are gone, deletes pods whose agent has ended, and
// spare ones whose scheduler is gone, keeps a NetworkPolicy in every namespace
// with Functions, and installs the ClusterRuntimes that it was given. It starts no instances and takes no part in any
// call: while it is away, everything that runs goes on.
//
// What is to be done with a Function is decided by plan, a function of values;
// the reconciler reads these values and carries the plan out. A plan is always
// made of the present state alone, so a controller that starts anew, or takes
// over from another one, needs no memory. All writes are such that repeating
// them does no harm.
package controller
