// Package health decides which scheduler gets a slot's tickets and pulls, from the heartbeats
// that gateways and schedulers exchange with every scheduler.
//
// A Peers keeps a heartbeat stream to every scheduler that is a member or owns a slot. A
// scheduler is silent if it misses three heartbeats, its machine refuses connections, or it
// reports that it does not serve (ownership.FailureDetector). The slots of a silent owner are
// routed to the member that will own them next (ownership.Map.Route). That happens long before
// etcd names a new owner, and also while etcd cannot be reached.
//
// Invariants:
//
//   - Looking up a route costs one atomic load.
//   - Every change of a route is signalled.
//   - A member that comes and goes within a second does not move routes back and forth.
//
// Observers with the same view compute the same route. Views may differ for a moment; that does
// no harm, because calls are claimed at their gateways.
//
// The package also converts what gateways and schedulers write to each other in more than one kind of
// message: greetings, maps of slots and refusals.
//
// Schedulers may add data to their heartbeats (CapacityExchange), such as requests for room on the nodes.
package health
