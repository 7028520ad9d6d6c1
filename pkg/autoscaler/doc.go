// Package autoscaler decides, for one function and one tick, how many instances to
// create or to withdraw, and why.
//
// A decider is a pure function of a Snapshot: it reads no clock, logs nothing
// and remembers nothing but the Memory that the caller hands back with the
// next snapshot. So a decision can be kept, replayed and explained, and a
// simulator runs the very same code. A decision takes the same time however many
// calls there are.
//
// All deciders stand in registry.go, each with what it is. The default is horizon; listing1
// is the algorithm of the paper, Kim and Roh, "Scheduling Containers Rather Than Functions
// for Function-as-a-Service" (FPCSch).
//
// Each promises: nothing is created while nothing waits and nothing has come; a
// function that has calls, no instance and room gets one within the horizon; no
// more is withdrawn than is on its way, and never the last.
//
// Bound then applies what they leave open: instances that crashed, and the least
// and the most instances that a function may have.
package autoscaler
