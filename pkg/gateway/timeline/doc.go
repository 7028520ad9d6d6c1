// Package timeline splits the time of a call into phases:
//
//	admit    from its receipt until its ticket was offered: authentication, limits, and
//	         reading a small body
//	queue    until an instance claimed it; for a retried call, until the last claim
//	core     until it had a core of its busy node; calls that did not wait for one lack it
//	claim    until the function received it: the grant, the request and its way there
//	execute  until the function had finished
//	return   until the answer was complete
//
// Invariants, whatever times instances report:
//
//   - Phases follow each other without a gap, and none is negative.
//   - They add up to the time from the receipt of the call to its end.
//   - A call that did not reach a phase lacks it and all later ones, and only core is left out
//     in between.
//
// The instance reports when its function began. The gateway trusts that within the limits of
// its own observations. If the instance reported nothing, the whole time since its claim counts
// as execution, because it may have been that.
//
// A Timeline is a value. It reads no clock and holds no lock.
package timeline
