// Package wellknown has the names that Windlass gives things in a cluster, and that other programs go by: labels,
// annotations and finalizers. It imports nothing, so a program that reads a label does not link the types of Kubernetes.
package wellknown

// Group is the API group of every Windlass kind.
const Group = "windlass.dev"
