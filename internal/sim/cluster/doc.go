// Package cluster simulates provisioning in virtual time: functions that are called,
// a scheduler that decides how many instances there are, and machines on which they
// start and run. It answers what a decision costs and what it is good for; package sim
// beside it asks what faults do.
//
// What decides is the product's own code, with its own constants: the core of each
// function (package scheduler/core), which has the queue, admission, the deciders and
// their bounds, what was learnt and what is kept of idle functions; the planner of what
// spans functions (package capacity), which has room, reservations, evictions and shares;
// and the pick of a node. The shell here (type scheduler) is what package scheduler is
// for the product: it feeds the cores events and carries out their effects, in virtual
// time. It leaves out ticks that have nothing to do. Instances ask to leave as the agent
// does.
//
// A simulation is a Config, a value, and Run makes a Result of it, another one. It is
// a heap of events and nothing else: no goroutine, no clock. Chance comes from one
// seed, in streams of their own for works, starts, picks of nodes and each load, so
// that what one policy draws changes nothing for what another one meets. The same
// Config always has the same Result.
//
// The models, and what they leave out:
//
//   - A call takes its work on an instance, plus Overheads, which are constants. What
//     the control plane can do in a second has no limit.
//   - An instance takes Function.Start from its order to its first pull, longer where
//     Nodes.Starts makes starts take turns. No start fails, and no instance or machine
//     breaks down. One that leaves or is taken back is gone at once, and its place is
//     free.
//   - Calls on a machine do not hinder each other, unless it has a Capacity. Then
//     they share each resource equally in proportion to what they demand of it: where
//     they demand k times what there is, each that needs it runs at 1/k of its speed,
//     and one that needs several at the slowest of them. What is not demanded is not
//     missed: the model knows no thrashing, nor what sharing itself costs.
//   - Loads call whatever becomes of their calls, clients wait for their answers. Both
//     are asked for one call after the other, so that a day of a million functions is
//     never in memory. A function that was never called takes the room of a pointer,
//     and one that rests costs no time.
//
// Config.Hash replaces the pulling by what it is compared with, package hashsch, on
// the same machines, under the same loads: calls are pushed, and a container starts
// within the call that needs it.
package cluster
