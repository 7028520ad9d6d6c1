// Package callwire carries calls between gateways and agents: the frames, and the connection
// that carries them.
//
// An agent dials a gateway when it gets the first ticket of that gateway, and keeps the
// connection. The frames of all its calls there share it:
//
//	agent   Hello                                 gateway  Welcome
//	agent   Claim (a ticket)                      gateway  Call, or Refused
//	agent   Head, Body, ..., End, or Release      gateway  Body, ..., End, Cancel
//
// The last frame of a call that was not refused says whether the agent keeps the call's place
// for the gateway: a credit, which is a pull that the instance has lent to the gateway. A
// gateway with a credit sends its next Call without a ticket, and uses the credit up. So a call
// by a loan is two frames.
//
// Credits say how many, not which: the places of an instance are alike. The agent is the
// arbiter of its places. It takes credits back with TakeBack at any time. A Call that crosses a
// TakeBack is released with FlagNoCredit, without having run, so that a gateway that is wrong
// about its credits costs a message and never a second call in one place.
//
// A call by a credit may wait for a core of a busy node. The agent says so with LongWait once it has
// waited long, and again when that is over. A gateway with a credit of an instance on a calm node
// asks for the call with GiveUp. The answer is a Release or, if the call has begun, the LongWait that
// is over.
//
// Calls have numbers: odd ones are begun by the agent with Claim, even ones by the gateway with
// Call. Both rise by two, so that a late frame never means another call.
//
// Bodies in frames of their own are bounded by a window for each direction of each call, which
// the receiver opens as it passes the body on. So a slow client or a slow function holds up its
// own call only, and at most InitialWindow bytes of it.
//
// Rules for later releases: frames of unknown kind are ignored and counted, fields are added at
// the end of a frame's payload and ignored by those who do not know them, and zero means that a
// field is not set. Hello and Welcome agree on a protocol and on features as package wire does.
package callwire
