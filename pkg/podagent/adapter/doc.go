// Package adapter holds the words between the agent and the protocols of
// functions: a Call, its Head, and the Adapter that turns one into the other.
//
// Each protocol is a package below this one: httpadapter calls a plain HTTP
// server on the instance's port, and lambda serves the AWS Lambda Runtime API,
// from which the function's runtime client pulls its events.
package adapter
