// Package autoscaler decides, for one function and one tick, how many instances to create, how
// many pending launches to cancel, and why.
//
// Invariants of every decider:
//
//   - It creates nothing while no call waits and none has come.
//   - A function that has calls and room but no instance gets one within the horizon.
//   - It cancels no more than the pending launches, and never the last instance.
//   - A decision takes the same time however many calls wait.
//
// A decider is a pure function of a Snapshot. It reads no clock, logs nothing, and remembers
// only the State that the caller passes back with the next snapshot. So decisions can be
// stored, replayed and explained, and simulators run the same code.
//
// registry.go lists all deciders. The default is Horizon. FPCSch is the algorithm of the paper,
// Kim and Roh, "Scheduling Containers Rather Than Functions for Function-as-a-Service".
//
// After the decider, Bound replaces crashed instances and applies the minimum and the maximum.
// Package floor computes the minimum, package estimate the times in the snapshot; package
// decisionlog keeps decisions for people.
package autoscaler
