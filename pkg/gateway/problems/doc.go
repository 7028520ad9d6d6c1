// Package problems lists the errors with which Windlass itself answers a call: for each reason
// its status, its title and advice. Gateways answer from this list, and docs/problems.md is
// generated from it.
//
// The status says whether the function may have run, so that a proxy needs to know nothing of
// Windlass: after 502 and 504 it may have run, after the status of any other problem it did not.
package problems
