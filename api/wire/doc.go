// Package wire holds what all conversations between gateways, schedulers, agents and
// the controller have in common. The messages are in two packages, by who must
// understand them for how long: agent/v1alpha1 for agents, which live on while the
// control plane is updated, and control/v1alpha1 for the control plane itself.
//
// Times travel as durations and never as points in time, so that the clocks of
// two machines need not agree. Every message may be lost with its stream:
// whoever opens the stream again says again what still holds.
package wire
