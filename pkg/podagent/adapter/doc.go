// Package adapter defines the interface between the agent and the protocols of functions: a
// Call, the Head of its answer, and the Adapter that runs it.
//
// Call and ResultWriter carry HTTP from end to end: lengths, bodies that stream in both directions
// at a time, trailers, interim answers, and connections that switch protocols. What a protocol has
// no place for, its adapter drops.
//
// Each protocol is a package below this one: httpadapter calls a plain HTTP server on the
// instance's port, and lambda serves the AWS Lambda Runtime API, from which the function's
// runtime client pulls its events.
package adapter
