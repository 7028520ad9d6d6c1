// Package invocation holds the words that every part of Windlass shares: what an
// invocation, a ticket, a claim token and an instance id are, and what an
// error may say about whether the function ran.
//
// It holds values only. An invocation is identified by an ID that its gateway
// mints; a Ticket is the small note about it that waits in a queue; the Token
// in the ticket is what an instance must show to claim it. A CID names an
// instance and is its rank in the pull order: the alphabetically first CID
// pulls first (FPCSch IV-C).
package invocation
