// Package local runs Windlass in one process on one machine: gateway, scheduler with an embedded
// etcd, provisioner, and instances as child processes, all on 127.0.0.1. It composes the same
// parts as a cluster and decides only the order in which they start and stop.
//
// When it stops, it refuses new calls, waits for the running ones, and then ends the instances.
// When Run has returned, none of its processes and listeners is left.
package local
