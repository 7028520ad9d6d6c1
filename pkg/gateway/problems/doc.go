// Package problems is the list of what Windlass itself answers to a call: for each reason
// its status, its title and what to do about it. Gateways answer by it, and docs/problems.md
// is made from it.
//
// The status says what became of the call, so that a proxy that knows nothing of Windlass
// can tell: after 502 and 504 the function may have run, and after every other status of
// a problem it did not.
package problems
