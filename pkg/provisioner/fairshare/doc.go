// Package fairshare divides a launch budget among functions by deficit round robin (Shreedhar
// and Varghese 1995). Namespaces take turns, and so do the functions within a namespace. A turn
// is worth the same to every namespace, in units of what instances cost, so that neither many
// functions nor expensive instances give a namespace more than others.
//
// Invariants:
//
//   - Budget remains only if no function that wants it can use it.
//   - A namespace that wants less than its share gets everything that it wants.
//   - All other namespaces get equal amounts, up to one turn.
//   - What one round did not reach, for lack of budget or of room, comes first in the next.
//
// The package does not know whether nodes have room. A round is a dialogue: after each grant of
// one instance, the caller says whether it could be launched.
package fairshare
