// Package queue is the queue of one function as a value: which tickets wait,
// which instances ask for one, and who is out with what.
//
// It decides which instance gets which ticket: the ticket that arrived first
// goes to the instance with the alphabetically first CID among those that
// asked (FPCSch IV-C). So work flocks to few instances and the rest starve.
// It also decides whether an instance may leave or be sent away, and what becomes
// of the tickets of one that went away.
//
// It promises that a ticket is in one place at a time, waiting or out with one
// instance; that no instance holds more tickets than it asked for, nor more than
// its capacity, a ticket that was taken back not counted; that after
// Match no ticket waits while an instance asks; and that the number of waiting
// tickets never exceeds Limits.MaxWaiting, beyond which Offer refuses. Only
// tickets that come back from an instance may exceed it, since refusing those
// would lose calls.
//
// Tickets that nobody withdrew are forgotten past their deadline, when they are
// first in the order.
//
// Whether a ticket still stands for a call that wants to run is known to its
// gateway alone; handing one out twice is harmless, because an instance must
// claim the call there before it runs it.
//
// A Queue holds no lock and reads no clock: package broker adds both.
package queue
