// Package health watches schedulers for gateways and for other schedulers, and
// decides from what it sees which of them a slot's tickets and pulls go to.
//
// It keeps a stream of beats to every scheduler that is a member or owns a slot.
// One that misses three beats, whose machine refuses connections, or that says
// itself that it does not serve, is silent (ownership.FailureDetector); the slots of a
// silent owner go to whoever will own them next (ownership.Map.Route), which is
// long before etcd says so, and also while etcd cannot be reached. Whoever looks
// at the same members with the same eyes comes to the same route; that eyes differ
// for a moment does no harm, because calls are claimed at their gateways.
//
// A scheduler may say more with its beats (Talk): that it lacks room, which others could make.
//
// It promises that asking for a route costs one atomic load, that every change of
// a route is signalled, and that a member that comes and goes within a second
// changes nothing to and fro.
package health
