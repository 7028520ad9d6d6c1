// Package node composes the node agent of a cluster, for windlass and for the small program windlass-node. It decides only
// which parts that consists of, which pods may come, and in which order its parts start and stop.
//
// It promises that when a node agent has stopped, however that happened, no pod is in the low band. Only where its whole
// container was killed, that waits for the next one. And it links no more than a node agent needs, because it is in the
// memory of every node.
package node
