// Command scale measures how many instances one scheduler's provisioner can
// order, and what that costs the Kubernetes API.
//
// It runs a real kube-apiserver and etcd with as many nodes as it is told, none
// of which exists: it plays their kubelets itself. It prints lines name=value.
//
//   - decisions_per_second: instances ordered, from the candidates by way of the
//     node's choice to the queue of creations, without waiting for the API. The
//     goal is 2500 or more.
//   - pod_creates_per_second: pods created, from the first order until the API has
//     answered the last; it says more about the machine than about Windlass.
//   - api_writes_per_instance: requests that write, over whole lives. The goal is
//     2 or less.
//
// Each is the median of the runs; _min and _max are their spread.
package main
