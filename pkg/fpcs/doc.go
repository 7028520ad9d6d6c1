// Package fpcs decides, for one function and one tick, how many instances to
// create and why.
//
// A decider is a pure function of a Snapshot: it reads no clock, logs nothing
// and remembers nothing but the Memory that the caller hands back with the
// next snapshot. So a decision can be kept, replayed and explained, and a
// simulator runs the very same code.
//
// Listing1 is the algorithm of the paper, Kim and Roh, "Scheduling Containers Rather Than Functions
// for Function-as-a-Service" (FPCSch), Listing 1.
// Bound then applies what the paper leaves open: instances that crashed, and
// the least and the most instances that a function may have.
package fpcs
