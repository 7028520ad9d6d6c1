// Package wire keeps the conversations of every release and plays them to this one.
//
// What a scheduler, a gateway and an agent of a release said to each other in some
// stories is recorded once (make record-wire), with the descriptors of the messages as
// they were then. The tests play it ever after: one program is today's, and all others are
// fake peers that say word for word what was recorded. Fake peers know nothing but what is in
// the recording, so a member, a number, a name of a method or a rule that went since is
// seen as their release would see it.
//
// What is checked is what the program of today says: on which stream, in which order, of
// which kind and with which meaning. Not checked are ids, texts for people, and times but
// for whether there is one. No stream may end before the recorded one did, and every call
// must be answered as it was. All of it is played twice, the second time with fields and
// members added that no release has.
//
// Everything is in one process, in memory and in a bubble of virtual time. Only to
// connect, clients go to a port of the loopback interface, because that is how the
// programs are made; the connection is replaced by one in memory at once.
package wire
