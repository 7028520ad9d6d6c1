// Package adapter defines the interface between the agent and the protocols of functions: a
// Call, the Head of its answer, and the Adapter that runs it.
//
// Each protocol is a package below this one: httpadapter calls a plain HTTP server on the
// instance's port, and lambda serves the AWS Lambda Runtime API, from which the function's
// runtime client pulls its events.
package adapter
