// Package local is Windlass in one process on one machine: gateway, scheduler
// with an embedded etcd, provisioner, and instances as child processes, all on
// 127.0.0.1. It composes the same parts as a cluster does and decides nothing
// itself but the order in which they start and stop.
//
// When it stops, it takes no new calls, waits for those in flight, and then
// ends the instances; when Run has returned, no process and no listener of it
// is left.
package local
