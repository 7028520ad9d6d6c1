// Package lab runs a whole Windlass of real programs on one Linux machine, and breaks it on demand:
// three members of etcd, an API server with an etcd of its own, schedulers and gateways, and pods
// that a kubelet of the lab runs as an agent and a function each.
//
// Every member has a network namespace of its own, joined by one bridge, so that the lab can cut
// it off, slow it down and refuse its connections like a machine's. There are no containers and no
// images, so killing and starting a member costs milliseconds.
//
// Nothing remains of a lab. It lives in namespaces for processes, mounts and networks that Enter
// makes and that end with their first process, however that ends. It writes below one folder,
// which the caller of Enter removes.
//
// It needs Linux and root.
package lab
