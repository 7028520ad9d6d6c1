// Package podspec decides what the pod of an instance looks like. It is a pure function: the
// same Input yields the same pod, byte for byte.
//
// Spare builds the pod of a spare instance, AssignPatch the changes that assign it to a function, and
// AssignmentOf the data that the function brings along.
//
// # Two containers
//
// A pod has two regular containers: the agent, which starts first, and the function. The pod
// passes the Pod Security level "restricted": no root, no capability, no privilege escalation,
// the runtime's seccomp profile. It accepts no inbound traffic but the kubelet's (see package
// kube and the controller's NetworkPolicy). It names its node itself, so that no kube-scheduler
// takes part.
//
// The function runs as UserID, or as the user of its namespace (UserIDs), whatever its image
// says. A fixed number lets most images run that the kubelet would otherwise refuse: images that
// name no user, and so mean root, and images that name a user by name, which the kubelet cannot
// check. UserID is the number of the user "nonroot" of many base images, so that these find
// themselves in their own list of users. The user of a namespace is in no image's list and owns
// no file of an image, so authors ask for it explicitly. The group stays the same.
//
// The agent has a user of its own, which gives the function no more access. The two containers
// share the network, where the agent serves every process of the pod, and the IPC namespace with /dev/shm,
// where the agent keeps nothing. They share neither a process namespace nor a volume, so the
// function cannot reach the agent's secrets. The kubelet gives a token to the user of a pod
// whose containers have one user; here every user of the container that mounts a token can read
// it. An image writes to /tmp, which is also its HOME; it can write elsewhere only where the
// image's own permissions allow it.
//
// # Secrets
//
// Three tokens are mounted at most: into the agent's container the agent's, which only the
// scheduler accepts, and one that only node agents accept, if there are any; and into the function's container that of spec.serviceAccountName, if the
// function has one.
//
// # Code
//
// Inline code is an annotation of the pod that the kubelet writes into a file (a downwardAPI
// volume), so that starting an instance takes one write to the API. A ConfigMap is mounted
// directly. Both are at TaskRoot.
//
// # The end
//
// When the kubelet ends a pod, it signals all containers at once. The function's preStop hook
// waits until the agent has drained, so that the function outlives its last call. The grace
// period covers a whole call, up to MaxGrace. A pod that has no call to finish is deleted with
// EndedGrace instead.
package podspec
