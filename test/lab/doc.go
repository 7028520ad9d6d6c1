// Package lab puts a whole Windlass together of real programs on one Linux
// machine, and breaks it on demand: three members of etcd, an API server with an
// etcd of its own, schedulers and gateways, and pods that a kubelet of the lab's
// own runs as an agent and a function each.
//
// Every member has a network namespace of its own, joined by one bridge, so that
// it can be cut off, slowed down and refused like a machine. There are no
// containers and no images, so killing and starting one costs milliseconds.
//
// What the package promises: nothing remains of a lab. It lives in namespaces for
// processes, mounts and networks that Enter makes and that end with their first
// process, however that ends; it writes below one folder, and whoever called
// Enter removes that.
//
// It needs Linux and root.
package lab
