// Package workers has the programs that windlass bench starts beside windlass up: the function,
// proxies, the load, and a gateway and a scheduler as separate processes. Each is a hidden
// subcommand, prints one line of JSON once it can be used, and ends when its standard input does,
// so that none outlives the bench.
//
// Gateway and scheduler are composed as in a cluster: mutual TLS, metrics, and the process driver
// in the place of Kubernetes. What a warm call does not need is left out: etcd, since one scheduler
// owns all slots, and callers' keys.
package workers
