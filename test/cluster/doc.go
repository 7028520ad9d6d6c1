// Package cluster starts a real Kubernetes cluster on one Linux machine, as root
// and without Docker, and removes it without a trace.
//
// It runs the release's own programs: etcd, kube-apiserver, the controller
// manager, the scheduler, one kube-proxy, CoreDNS, and for each node a containerd
// and a kubelet, so that what holds here holds elsewhere: admission, RBAC, token
// projection, eviction of dead nodes, services, logs, exec and port-forward.
//
// All of it lives in one network namespace of its own, which a pair of virtual
// interfaces joins to the machine. The machine reaches pods, services and node
// ports by their addresses, and pods reach the machine at Cluster.MachineAddress;
// its firewall rules, bridges and ports are not touched, and two clusters do not
// meet. A node is the first process of a PID and a mount namespace, so killing it
// is what a power cut is to a machine: Cluster.StopNode. When a cluster's
// processes are gone, the kernel has taken interfaces, rules and mounts with them;
// what is left is the state folder and empty cgroups, which Stop removes.
//
// A cluster ends with the process that started it, however that process ends,
// unless Config.Detach is set. Open finds a detached cluster by its state folder,
// as well as what a killed starter left behind.
//
// Differences from a production cluster: NetworkPolicies are stored but not
// enforced; pods do not reach the internet, and images come from LoadImage, or from
// a registry on this machine that PullFrom names; there is no storage class, and no
// load balancer; etcd listens without TLS, inside the namespace; kube-proxy runs once
// for all nodes, so that a service with internalTrafficPolicy Local answers for the
// first node only; every node reports the whole machine's CPU and memory unless Node
// says less; pods have cgroups of their own only where the machine has version 1 with
// the controllers cpu, cpuacct, cpuset and memory.
package cluster
