// Package workers has the gateway and the scheduler that windlass bench starts as separate
// processes. Each is a hidden subcommand, and behaves as the programs of package peers do.
//
// They are composed as in a cluster: mutual TLS, metrics, and the process driver in the place of
// Kubernetes. What a warm call does not need is left out: etcd, since one scheduler owns all slots,
// and callers' keys.
package workers
