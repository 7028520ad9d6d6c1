// Package kube fills a catalog from the Functions of a cluster.
//
// It promises that the catalog holds exactly the Functions that are valid, have
// their defaults, and are not being deleted; that a Function whose status alone
// changed is no change; and that one whose Runtime says which protocol its
// functions speak has that protocol, also when the Runtime comes or changes
// later.
package kube
