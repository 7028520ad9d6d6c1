// Package table is the truth about invocations: which wait, which instance has
// claimed which, and so what may be said of each.
//
// An invocation is queued until an instance claims it with the token of its
// ticket; the claim is one step, so at most one instance ever holds it. An
// instance that did not start may release it, which queues it again under a new
// token, and so does a retry, which is for functions that may run twice. Ending
// removes it. Hence Executed: of a queued invocation that was never retried, and
// whose request was never entrusted to a ticket, it is certain that the function
// did not run; of any other it is not.
//
// A Table holds no lock and reads no clock. It is bounded: Admit refuses beyond
// its capacity.
package table
