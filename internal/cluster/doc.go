// Package cluster puts the programs of a cluster together: gateway, scheduler,
// controller, and what cleans up after them. It decides nothing but which part
// is made of which, in which order they start, and in which they stop.
//
// A gateway that is told to stop goes on taking calls for as long as it takes the
// cluster to notice, and then finishes those that it has. A scheduler gives its
// slots back first and answers instances and gateways that come to it still, so
// that they find the new owner. Nothing that either does at its end fails a call.
package cluster
