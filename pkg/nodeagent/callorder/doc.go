// Package callorder decides which calls of a node compute: it hands out as many core tickets as
// the node has cores, in a configurable order, and says which instances run in the low band.
//
// A call asks for a core ticket before it begins. It gives the ticket back when it ends, when it
// has used up its slice, when it blocks on something other than the processor, or, with
// preemption, when a much shorter call waits. Calls without a ticket that have begun go on in
// the low band: they get what the others leave of the cores.
//
// Invariants, in whatever order events come, while the node is busy:
//
//   - At most Cores calls hold a ticket, but for calls that ran already when the node became
//     busy or its cores fewer and the order None, which has no tickets.
//   - No call waits while a ticket is free. There are as many tickets as Cores, less the cores on
//     which latency-critical instances compute, and at least one. Of these, Params.Outlived, but
//     never all, are none while calls that outlived their slice can use the cores.
//   - While a call that has outlived its slice and does not sleep is older than Params.OutlivedAge,
//     one such call computes in the normal band, the oldest first.
//   - A standard instance is in the low band only while it runs a call without a ticket, or after it has
//     computed more without one than it may.
//
// A calm node grants every ask at once and has no standard instance in the low band. Batch instances
// are in it at all times, and latency-critical ones never; calls of both begin at once.
//
// An instance asks for one call at a time: functions of higher concurrency do not ask, since
// their calls cannot be told apart by the processor time of the instance. The queue thus has
// one call for each instance. That is enough: each order is monotone within a function, and a
// function's queue at its scheduler hands out its oldest call first, so the smallest key of
// all calls that wait for this node is always the key of some instance's call.
//
// The sizes that orders use are measured, never reported: the growth of the instance's
// processor time from grant to end. The core keeps the mean of the last ten for each function
// of each namespace.
//
// Sources: Zuk, Przybylski and Rzadca, "Call Scheduling to Reduce Response Time of a FaaS
// System" (the orders FIFO, SEPT, EECT, RECT and Fair-Choice); Fu et al., "SFS: Smart OS
// Scheduling for Serverless Functions" (slices, blocked calls, overload); Zhao et al., hybrid
// FIFO and CFS scheduling (the limit at a percentile). The order SERPT, its aging and its
// preemption are Windlass's own.
//
// A Core is a value in memory. It holds no lock, reads no clock and starts nothing: Step takes
// an event and the time, and returns effects in the order to carry them out.
package callorder
