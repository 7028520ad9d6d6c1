// Package kube fills a catalog from the Functions of a cluster and their FunctionRevisions.
//
// Invariants:
//
//   - The catalog holds the Functions that are valid, have their defaults, and are not being
//     deleted, each with its units and routes from rollout.Compose.
//   - A Function that becomes invalid stays in service with its revisions as they were.
//   - Calls keep their route while objects of one of the two kinds are still missing; events
//     of the two kinds may come in any order.
//   - A change of status that does not concern revisions changes nothing in the catalog, and
//     a change of one revision changes no other.
//   - A Function has the protocol that its ClusterRuntime names, also if the ClusterRuntime
//     is created or changed later.
package kube
