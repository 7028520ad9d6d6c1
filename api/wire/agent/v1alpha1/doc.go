// Package agentwire is the wire between agents and the control plane, generated from
// agent.proto: an agent pulls tickets from a scheduler, and claims each at the gateway that
// the ticket names.
package agentwire
