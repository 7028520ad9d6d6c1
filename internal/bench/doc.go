// Package bench puts a workload's calls on a gateway over HTTP, at the times
// that the trace says, and reports what came of them.
//
// The load is open loop: a call is sent when it is due, however many are still
// under way. At most Config.MaxInFlight are; a call that finds the bound
// reached is not sent and counts as an error. No call is ever delayed on
// purpose, and by how much the sender itself was late is in the report.
//
// Replay does the sending and gives one Sample per call. Everything after that
// is a function of the samples: Summarize makes a Report, its Table and Values
// print it, and Verdict says what failed. The setup time of a call is its total
// time minus the function's own time as the gateway's answer tells it: what
// Windlass and the network add, waiting for an instance included.
package bench
