// Package node simulates one node in virtual time: calls come, and a policy decides which of them
// compute on the node's cores. It shows what an order of calls costs and what it gains, beside the
// policies that papers propose and beside an oracle.
//
// A simulation is a list of calls, a number of cores and a policy, from which Run makes a result for each
// call. It is a heap of events, without goroutines, a clock or randomness. The same arguments
// always give the same results.
//
// The policies:
//
//   - Sharing: all calls share the cores. It is the ideal of CFS and EEVDF.
//   - Queueing: calls run to their end, in an order that is fixed when they come.
//   - Shortest: the call with the shortest rest runs. It knows all sizes: an oracle.
//   - Filter: SFS as published.
//   - Hybrid: cores in two groups, one for calls from a queue up to a limit, and one that shares, as published.
//   - Tickets: core tickets. The decisions are the product's own code, package callorder. With groups of
//     cores, calls without a ticket have cores of their own. The product has no groups: docs/design/0040
//     says why.
//   - Kernel: one core as Linux shares it, slice by slice. Filter and Tickets run on it if their field Kernel is set, as
//     test/nodesched sets it to compare them with real processes. The experiments of windlass sim share ideally.
//
// The models, and what they leave out:
//
//   - A call is a chain of phases: it computes, it sleeps, or it needs the node's shared resource.
//     A call computes on at most one core.
//   - Without Kernel, calls that share cores do so perfectly: each gets the same part of them, at every
//     moment. Where bands have priorities, a lower one gets exactly what the higher ones leave.
//   - With it, a call that comes counts as one that has had exactly its share, whatever its process did before. The kernel
//     looks at the end of each slice. It really does where threads that share a control group read their processor time, and
//     where those of Go's runtime wake up; otherwise it looks at its next tick.
//   - A change costs nothing: no switch, no cold cache, no call to the kernel. Instances are warm
//     and as many as the calls need. Messages take no time.
//   - Nothing else runs on the node.
package node
