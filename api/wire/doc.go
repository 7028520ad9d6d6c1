// Package wire has the common parts of the conversations between gateways, schedulers, agents
// and the controller, and between agents and node agents. The messages are in packages by how long
// programs of two versions must understand each other: agent/v1alpha1 and node/v1alpha1 for agents,
// which outlive updates of the control plane, and control/v1alpha1 for the control plane itself.
//
// Times travel as durations and never as points in time, so that the clocks of two machines
// need not agree. Every message may be lost with its stream: a client that opens the stream
// again repeats everything that still holds.
package wire
