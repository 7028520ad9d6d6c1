// Package nodeagent decides on each node which calls of its instances compute, by the
// rules of package callorder.
//
// Agents of instances connect to it and ask for a core ticket before a call begins, but only
// while the node is busy: more threads want to run than it has cores. While it is busy, the
// node agent samples the processor time of the calls that compute, and moves instances between
// the normal and the low band. An instance that starves in the low band gets a breath: it is
// normal for a few milliseconds, so that the agent beside the function can say that it is there.
//
// With CoLocation it also looks 10 times a second at how long latency-critical instances wait, while
// batch instances are beside them, and keeps these back by the rules of package colocate.
//
// It promises its agents little, and they need not believe it: an agent that hears nothing runs
// its calls. It promises the node this:
//
//   - A calm node exchanges no messages for calls, and all its instances are normal, but for those
//     of class Batch.
//   - What an agent says of itself gives it nothing: LatencyCritical counts in namespaces that
//     Config names, and a slice only if it is shorter than the node's.
//   - Only instances that said hello are ever low, and only by their own Group.
//   - Only batch instances are kept back, only while latency-critical ones are here, and only by their own
//     Hold.
//   - When Run ends, all of them are normal, and none is kept back. What ends without Run's end, or hangs, is the
//     matter of package cgroups, its guardian and its watcher.
//   - It holds at most MaxAgents streams, and for each a bounded queue of replies. Who does not
//     read them loses the stream, and nobody waits for it.
//
// One lock guards the core and all that belongs to it; what is done under it are file
// operations of a microsecond (a cpuset takes a hundred), and never a send.
package nodeagent
