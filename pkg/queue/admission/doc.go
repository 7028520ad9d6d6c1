// Package admission decides whether a function's queue admits a call. It runs at the owner of the
// queue, the only place that knows all calls of the function.
//
// It refuses a call, in this order of checks,
//
//   - if the function's waiting and running calls have reached its limit;
//   - if the call would wait for longer than its caller does;
//   - if the rate of calls exceeds its limit. This check is last, so that a call which is
//     refused for another reason does not count against the rate.
//
// Invariants:
//
//   - An admitted call is not refused later: a ticket that the queue knows does not come here
//     again, and a ticket that was offered to a previous owner is admitted and not counted.
//   - A call that the instances would reach in time at the mean execution time is never
//     refused for its wait.
//
// The wait is predicted only if the mean execution time is known and the function cannot get
// another instance: during a cold start nobody knows how many instances will come, or when.
package admission
