// Package queue decides which instance gets which ticket. A Queue is the queue of one function
// as a value: its waiting tickets, the instances that poll for one, and which instance holds
// which ticket.
//
// The oldest ticket goes to the polling instance with the alphabetically first CID (FPCSch
// IV-C), so that work concentrates on few instances and the others become idle. There are two
// exceptions. An instance that could not reach a gateway gets no ticket of that gateway during
// a cool-down. An overloaded queue hands out its newest ticket first until it is short again:
// in order of arrival, every call would be served after its caller has stopped waiting.
//
// Invariants:
//
//   - A ticket is in one place: it waits, or one instance holds it.
//   - An instance holds no more tickets than it asked for. Its credits, its tickets and its
//     loans together are at most its capacity; requeued tickets do not count.
//   - After Match, no ticket waits while an eligible instance polls.
//   - After Recalls, no ticket waits while another gateway has a loan that was not recalled, and
//     that the instance may be handed the ticket for; unless as many places are owed as
//     tickets wait.
//   - At most Limits.MaxWaiting tickets wait; beyond that, Offer refuses. Only tickets that
//     come back from an instance may exceed the limit, because refusing those would lose
//     calls.
//   - A ticket past its deadline that nobody cancelled expires when it is the next to be
//     handed out, or when it is the oldest.
//
// An instance lends a place to the gateway whose ticket it ran there. The gateway then hands it
// further calls directly, and the queue knows the number of such places only. Recalls decides
// when loans end because tickets of other gateways wait.
//
// The queue also decides whether an instance may leave or be evicted, and what happens to the
// tickets of a lost instance.
//
// Only a ticket's gateway knows whether its call still has to run. Handing out a ticket twice
// is harmless, because an instance claims the call at the gateway before it runs it.
//
// A Queue holds no lock and reads no clock. Its user, pkg/scheduler/core, passes the time.
package queue
