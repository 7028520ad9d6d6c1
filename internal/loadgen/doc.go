// Package loadgen generates the load of the benchmarks, the labs and the demo.
//
// A Load begins calls and writes the result of each into a run log. In an open loop calls begin
// when they are due, however many are still running. In a closed loop each client makes one call
// after the other. The user decides what a call does and what is recorded.
//
// A Client makes one HTTP call and reads the answer to its end. Neither it nor net/http repeats a
// call unless the request allows that, so that each call in a run log is at most one request.
//
// A Driver makes as many calls as a server takes, or a fixed number a second, over a fixed number
// of connections, and keeps only their number and a histogram of their latency. A call costs it a
// fraction of what a Client needs, so that the load leaves the machine to the servers.
//
// A Balancer spreads calls over gateways as a load balancer does.
package loadgen
