// Package queue is the queue of one function as a value: which tickets wait,
// which instances ask for one, and who is out with what.
//
// It decides which instance gets which ticket: the ticket that arrived first
// goes to the instance with the alphabetically first CID among those that
// asked (FPCSch IV-C). So work flocks to few instances and the rest starve.
// There are two exceptions. A ticket of a gateway that an instance could not reach
// is not handed to that instance for a while. And in a queue that is hopeless, the
// ticket that arrived last goes first, until the queue is short again: in order of
// arrival, every call would be served when nobody wants it any more.
//
// It also decides whether an instance may leave or be sent away, and what becomes
// of the tickets of one that went away.
//
// It promises that a ticket is in one place at a time, waiting or out with one
// instance; that no instance holds more tickets than it asked for, nor more than
// its capacity, a ticket that was taken back not counted; that after
// Match no ticket waits while an instance asks that may be handed it; and that the number of waiting
// tickets never exceeds Limits.MaxWaiting, beyond which Offer refuses. Only
// tickets that come back from an instance may exceed it, since refusing those
// would lose calls.
//
// Tickets that nobody withdrew are forgotten past their deadline, when it would be
// their turn or when they are the oldest.
//
// Whether a ticket still stands for a call that wants to run is known to its
// gateway alone; handing one out twice is harmless, because an instance must
// claim the call there before it runs it.
//
// A Queue holds no lock and reads no clock: its user, pkg/scheduler/core, brings the time.
package queue
