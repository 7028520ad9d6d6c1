// Package wirev1 is the wire between gateways, schedulers and agents, generated
// from wire.proto: three conversations, each a stream that its client opens.
// A gateway offers tickets to a scheduler, an agent pulls them there, and claims
// each at the gateway that it names.
//
// Times travel as durations and never as points in time, so that the clocks of
// two machines need not agree. Every message may be lost with its stream:
// whoever opens the stream again says again what still holds.
package wirev1
