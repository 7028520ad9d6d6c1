// Package admission decides whether a function's queue takes a call in, for the
// owner of the queue, which is the one place that knows all calls of the function.
//
// A call is refused if as many of the function's calls wait and run as its limit
// allows, if it would have to wait for longer than anybody wants it, or if more
// come in a second than the limit on their rate allows. They are checked in this
// order, so that a call which is refused for another reason is not counted against
// the rate.
//
// The wait is predicted only if the mean execution time is known and no further
// instance can come: during a cold start nobody knows how soon there will be how
// many. It promises never to refuse for the wait a call that the instances would
// reach in time at that mean.
//
// A call that was let in once is not refused later: whoever offers a ticket again
// must not ask again, and one that was offered to an owner before this one is let in
// without being counted.
package admission
