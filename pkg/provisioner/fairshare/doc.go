// Package fairshare divides what may be created now between those who want it, by
// deficit round robin (Shreedhar and Varghese 1995): namespaces take turns, and
// within a namespace its functions do. A turn is worth the same to every namespace,
// counted in what instances cost, so that neither many functions nor expensive
// instances give a namespace more than others.
//
// It promises that nothing is left while somebody wants it and can have it; that a
// namespace which wants less than its share gets all that it wants; that the others
// get as much as each other, up to a turn; and that who was not reached in one round
// is first in the next.
//
// Whether there is room for an instance is not known here: a round is a dialogue, in
// which the caller says after each grant how many of it could be had.
package fairshare
