// Package cluster composes the programs of a cluster: gateway, scheduler, controller, and the
// cleanup; package node composes the node agent, and package role has what all of them share. It decides only which parts each consists of, and in which order they start and stop.
//
// Invariants:
//
//   - No call fails because a gateway or a scheduler stops in order.
//   - A stopping gateway accepts calls until the cluster has noticed, and then finishes those
//     that it has.
//   - A stopping scheduler first hands off its slots, and then redirects instances and gateways
//     to the new owners.
package cluster
