// Package admission decides whether a function's queue admits a call. It runs at the owner
// of the queue, the one place that knows all calls of the function.
//
// A call is refused if as many of the function's calls wait and run as its limit allows, if
// it would have to wait for longer than its caller does, or if more come in a second than
// the limit on their rate allows. The checks run in this order, so that a call which is
// refused for another reason does not count against the rate.
//
// The wait is predicted only if the mean execution time is known and the function cannot
// get another instance: during a cold start nobody knows how many instances come, or when.
// A call that the instances would reach in time at that mean is never refused for its wait.
//
// A call that was admitted once is not refused later: a ticket that the queue knows does not
// come here again, and a ticket that was offered to a previous owner is admitted and not
// counted.
package admission
