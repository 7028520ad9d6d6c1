// Package invocation defines the values that all parts of Windlass share: the ids of invocations
// and instances, tickets, claim tokens, refusals, records, the names of headers, and what an
// answer may say about whether the function ran and for how long.
//
// A gateway mints the ID of an invocation. A Ticket is the small note about an invocation that
// waits in a queue; the Token in the ticket authorizes an instance to claim it. A CID names an
// instance and is its rank in the pull order: the alphabetically first CID pulls first (FPCSch
// IV-C).
//
// Findings are none of what these parts send each other: windlass logs prints them.
package invocation
