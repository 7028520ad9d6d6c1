// Package podspec says what the pod of an instance looks like. It is a pure
// function: the same Input yields the same pod, to the byte.
//
// Spare says what the pod of a spare instance looks like, Claim what a function
// changes of it, and AssignmentOf what it is given besides.
//
// # Two containers
//
// A pod has two regular containers: the agent, which is started first, and the
// function. The pod passes the Pod Security level "restricted": no root, no
// capability, no privilege escalation, the runtime's seccomp profile. It takes
// no inbound traffic but the kubelet's (see package kube and the controller's
// NetworkPolicy), and names a node itself, so that no scheduler is asked.
//
// The function runs as UserID, or as the user of its namespace (UserIDs), whatever its
// image says. A number that is fixed lets most images run that would
// otherwise be refused: those that say nothing, and so mean root, and those
// that name their user, which the kubelet cannot check. UserID is the number of the
// user "nonroot" of many base images, so that those find themselves in their own
// list of users; a user of a namespace is in no image's list and owns no file of
// it, which is why it must be asked for. The group stays the same.
//
// The agent has a user of its own. Nothing is lost by that: the containers share the
// network, where the agent serves everybody of the pod, and the IPC namespace and /dev/shm, in which it keeps
// nothing, but neither a process namespace nor a volume, so the function does not meet the
// agent's secrets. The kubelet gives a token to the user of a pod whose containers have
// one in common; here tokens can be read by every user of the container in which they are mounted. What an
// image wants to write it writes to /tmp, which is also its HOME; the rest of its
// file system can be written where the image's own permissions allow it.
//
// # Secrets
//
// No token is mounted but those that are asked for: the agent's, which only the
// scheduler accepts, into the agent's container; and that of the function's
// spec.serviceAccountName, if there is one, into the function's.
//
// # Code
//
// Inline code is an annotation of the pod that the kubelet writes into a file
// (a downwardAPI volume), so that starting an instance is one write to the API.
// A ConfigMap is mounted as it is. Both are at TaskRoot.
//
// # The end
//
// When the kubelet ends a pod it signals all containers at once. The function's
// preStop hook asks the agent whether it has drained, and so the function
// outlives its last call. The grace period has room for a whole call, up to
// MaxGrace.
package podspec
