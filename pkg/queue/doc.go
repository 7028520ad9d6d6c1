// Package queue is the queue of one function as a value: which tickets wait, which
// instances poll for one, and which instance holds which ticket.
//
// It decides which instance gets which ticket: the ticket that arrived first goes to the
// polling instance with the alphabetically first CID (FPCSch IV-C). So work flocks to few
// instances and the rest starve. There are two exceptions. An instance that could not reach
// a gateway is handed no ticket of that gateway during a cool-down. And an overloaded queue
// hands out the ticket that arrived last first, until it is short again: in order of
// arrival, every call would be served after its caller has stopped waiting.
//
// It also decides whether an instance may leave or be evicted, and what happens to the
// tickets of an instance that is gone.
//
// It promises that a ticket is in one place at a time, waiting or held by one instance;
// that no instance holds more tickets than it asked for, nor more than its capacity, apart
// from tickets that were requeued; that after Match no ticket waits while an instance polls
// that may be handed it; and that the number of waiting tickets never exceeds
// Limits.MaxWaiting, beyond which Offer refuses. Only tickets that come back from an
// instance may exceed it, since refusing those would lose calls.
//
// A ticket past its deadline that nobody cancelled expires when it is next to be handed out,
// or when it is the oldest.
//
// Only the gateway of a ticket knows whether its call is still to run. To hand a ticket out
// twice is harmless, because an instance must claim the call at the gateway before it runs
// it.
//
// A Queue holds no lock and reads no clock: its user, pkg/scheduler/core, brings the time.
package queue
