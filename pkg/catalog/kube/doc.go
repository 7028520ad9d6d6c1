// Package kube fills a catalog from the Functions of a cluster and their
// FunctionRevisions.
//
// It promises that the catalog holds the Functions that are valid, have their defaults,
// and are not being deleted, each with what rollout.Compose makes of its revisions; that
// one which becomes invalid is served by its revisions as it was; that calls go where they
// went while it waits for one of the two kinds of objects, whose news may come in any
// order; that a change of status which says nothing of revisions is no change, and a
// change of one revision none of another; and that a Function whose Runtime says which
// protocol its functions speak has that protocol, also when the Runtime comes or changes
// later.
package kube
