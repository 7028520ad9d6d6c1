// Package kube is the provisioner's driver for clusters: it runs each instance as a pod.
//
// # Parts
//
// The registry holds the running instances under one lock. The creator creates their pods and
// the deleter deletes them, each with a queue. The watcher follows pods and nodes through
// informers. The resource cache sums up the requests on each node, and the exit queue holds
// exits that the provisioner has not received yet. The locks of deleter, resource cache, exit
// queue and work queues may be taken under the registry's lock, never the other way round.
//
// # Writes
//
// An instance costs two writes to the Kubernetes API: one POST that creates the pod on a node
// that was picked before, and one DELETE. Both wait in bounded queues behind a rate limit. The
// queues serve functions in turn, and one function gets only a part of the workers. So a
// function that wants thousands of pods, or whose namespace refuses or delays them, holds up no
// other function. Transient errors are retried for retryWindow. A final error ends the instance
// at once, with the message of the API server (see refusal).
//
// # Ends
//
// Every instance that was started or adopted has one Exit. classifyPod says whether a pod's
// instance has ended, and why. An instance has ended as soon as one of its containers has ended
// or cannot start; the driver then deletes the pod. The provisioner stops instances that merely
// do not become ready.
//
// # Progress
//
// Until an instance ends, the driver remembers when it first saw the pod, and when it saw that
// the pod had its network. It uses its own clock, because the times in a pod come from other
// clocks and are in whole seconds.
//
// # Room
//
// The resource cache sums up the requests of all pods of the cluster on each node, from
// informers that hold only the fields that this needs. A pod counts from its launch on. Nodes
// that recently refused or lost a pod are avoided while others have room.
//
// # Spare instances
//
// One request assigns a spare instance to a function: it changes the labels and the owner of
// the pod, on condition that the pod is still a spare one. From then on the pod is the
// function's, for Identify and Adopt alike. On any failure the driver deletes the pod, so that
// it never belongs to two instances and never becomes spare again.
//
// # Several schedulers
//
// Pods outlive the process that created them. Their labels and their owner identify the
// instance, and their names follow from that, so that no instance has two pods. Run deletes
// nothing when it ends.
package kube
