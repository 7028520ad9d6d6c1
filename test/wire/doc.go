// Package wire replays the conversations of every release against this one.
//
// The conversations of a scheduler, a gateway and an agent of a release are recorded once for some
// stories (make record-wire), with the descriptors of their messages. From then on the tests
// replay them: one side is today's, and all others are fake peers that repeat the recording
// word for word. Fake peers know nothing but the recording, so they see a removed member, number,
// method name or rule as their release would.
//
// Frames between agents and gateways (internal/callwire) are not recorded, so the gateway and all
// agents are one side: real together, or fake together. Any other program is a side of its own.
// The bytes of frames are a test of internal/callwire.
//
// The tests compare the messages of today's side: their stream, their order, their kind and their
// meaning. They ignore ids, texts for people, and the values of times. No
// stream may end before the recorded one did, and every call must be answered as it was. Everything
// is replayed twice, the second time with fields and members that no release has.
//
// Everything runs in one process, in memory and in a bubble of virtual time. Only to connect,
// clients use a port of the loopback interface, because the programs are built that way; the
// connection is replaced by one in memory at once.
package wire
