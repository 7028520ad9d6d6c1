// Package rollout decides which revisions a function has, and which share of its calls goes to
// each of them.
//
// Decide reads a Function and its FunctionRevisions, and returns a Plan: a revision for a
// template that has none, the traffic, the step of a rollout, and the revisions beyond the
// history limit.
//
// Invariants of Decide:
//
//   - The weights add up to 100.
//   - Calls go only to revisions that exist.
//   - No call goes to an unproven revision while a proven one exists, unless the function's
//     author asks for it.
//   - A Plan that was carried out is not decided again.
//
// Compose derives from the same objects what schedulers and gateways use: for each revision a
// unit, which is a function of its own with its own queue and instances, and the routes by which
// a gateway picks a unit when it admits a call. A call stays with its revision.
//
// Conditions computes the conditions of a Function and its revisions.
package rollout
