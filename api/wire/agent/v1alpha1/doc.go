// Package agentwire is the wire between agents and schedulers, generated from agent.proto: an
// agent pulls tickets from a scheduler. It claims each at the gateway that the ticket names, by
// package callwire.
package agentwire
