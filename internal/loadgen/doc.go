// Package loadgen is the load generator of the benchmarks, the labs and the demo.
//
// A Load begins calls and keeps a run log of what came of each. In an open loop calls
// begin when they are due, however many are still under way; in a closed loop each of
// some clients makes one call after the other. What a call is, and what is recorded of
// it, is the user's choice.
//
// A Client makes one HTTP call and reads the answer to its end. It never repeats a call
// unless the request allows that, and neither can net/http, so that each call in a
// run log is one request at most.
//
// A Balancer spreads calls over gateways as a load balancer does.
package loadgen
