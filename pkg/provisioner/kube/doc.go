// Package kube is the provisioner's runtime for clusters: an instance is a pod.
//
// # Parts
//
// The registry holds the instances that have not ended, under one lock. The creator
// brings their pods about and the deleter deletes them, each with a queue; the watcher
// follows what informers show of pods and nodes; the ledger sums up what nodes are
// asked for; the outbox holds exits. The locks of deleter, ledger, outbox and queues may
// be taken under the registry's, never the other way round.
//
// # Writes
//
// The life of an instance costs two writes to the Kubernetes API: the pod is
// created, on a node that was chosen before, and deleted. Both wait in bounded
// queues behind a rate limit. The queues serve functions in turn, and only a part
// of the workers serves one function, so that one that wants thousands of pods,
// or whose namespace refuses or delays them, holds nobody else up. What may pass
// is tried again for retryWindow; what is final ends the instance at once, with
// the API's own words (see refusal).
//
// # Ends
//
// Every instance that was started or adopted has one Exit. The function judge
// says of a pod whether its instance has ended, and why. It has as soon as one of
// its containers has, or cannot start; the pod is then deleted. Instances that
// merely do not become ready are the provisioner's to stop.
//
// # Progress
//
// When the pod of an instance was there, and when it was seen to have its network, is
// known until the instance has ended, as it was seen here: the times that a pod tells
// are those of other clocks, and in seconds.
//
// # Room
//
// The ledger keeps the sums of what pods request of each node, all pods of the
// cluster, from informers that hold only what is asked of a pod. A pod that is
// ordered counts from then on. Nodes that refused or lost a pod lately are
// avoided while others have room.
//
// # Spare instances
//
// A function takes a spare instance by one request that changes the labels and the
// owner of its pod, on condition that it is a spare one still. From then on the pod
// is the function's, for Identify and Adopt alike. Whatever fails, the pod is deleted:
// it is never of two instances, and never a spare one again.
//
// # Several schedulers
//
// Pods outlive the process that made them. Their labels and their owner say of
// which instance they are, and their names follow from that, so that an instance
// is never there twice. Nothing is deleted when Run ends.
package kube
