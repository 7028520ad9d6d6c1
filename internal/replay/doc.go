// Package replay replays a workload's calls against a gateway over HTTP, at the times of the
// trace, and reports the results.
//
// The load is an open loop: a call is sent when it is due, however many are still running. At
// most Config.MaxInFlight run at a time; a call beyond that is not sent and counts as an error.
// No call is delayed on purpose, and the report says how late the sender itself was.
//
// Replay sends the calls and returns one Sample for each. Everything after that is a function of
// the samples: Summarize makes a Report, its Table and Values print it, and Verdict says what
// failed. The setup time of a call is its total time minus the function's own time in the
// gateway's answer: the part of Windlass and the network, waiting for an instance included.
package replay
