// Package agentwire is the wire between agents and the control plane, generated from
// agent.proto: an agent pulls tickets at a scheduler, and claims each at the gateway
// that it names.
package agentwire
