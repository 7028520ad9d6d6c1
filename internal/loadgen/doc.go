// Package loadgen generates the load of the benchmarks, the labs and the demo.
//
// A Load begins calls and writes the result of each into a run log. In an open loop calls begin
// when they are due, however many are still running. In a closed loop each client makes one call
// after the other. The user decides what a call does and what is recorded.
//
// A Client makes one HTTP call and reads the answer to its end. Neither it nor net/http repeats a
// call unless the request allows that, so that each call in a run log is at most one request.
//
// A Balancer spreads calls over gateways as a load balancer does.
package loadgen
