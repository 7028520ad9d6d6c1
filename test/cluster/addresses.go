package cluster

import (
	"fmt"
	"net/netip"
)

// Ranges of which a cluster takes one: 10.<range>.0.0/16.
const (
	firstRange = 200
	lastRange  = 249
)

// addresses is the address plan of one cluster, within 10.<range>.0.0/16:
//
//	.0.0/30    the link between the machine and the cluster
//	.4i.0/22   the pods of node i, from 1; its first address is the node itself
//	.128.0/18  the services
type addresses int

func (a addresses) at(third, fourth int) netip.Addr {
	return netip.AddrFrom4([4]byte{10, byte(a), byte(third), byte(fourth)})
}

// all holds every address of the cluster.
func (a addresses) all() netip.Prefix { return netip.PrefixFrom(a.at(0, 0), 16) }

// control is the cluster's end of the link: API server, DNS, and node ports.
func (a addresses) control() netip.Addr { return a.at(0, 1) }

// machine is the machine's end of the link.
func (a addresses) machine() netip.Addr { return a.at(0, 2) }

func (a addresses) pods() netip.Prefix { return netip.PrefixFrom(a.at(0, 0), 17) }

func (a addresses) services() netip.Prefix { return netip.PrefixFrom(a.at(128, 0), 18) }

// apiService is the address of the service kubernetes.
func (a addresses) apiService() netip.Addr { return a.at(128, 1) }

// podsOf is the range of the node with this index, counted from 0.
func (a addresses) podsOf(node int) netip.Prefix {
	return netip.PrefixFrom(a.at(4*(node+1), 0), 22)
}

// node is the address of a node, and its pods' gateway.
func (a addresses) node(node int) netip.Addr { return a.at(4*(node+1), 1) }

// link names the machine's interface; that it is created only once keeps two
// clusters from taking one range.
func (a addresses) link() string { return fmt.Sprintf("windlass%d", int(a)) }

// bridge names the interface to the pods of a node.
func bridge(node int) string { return fmt.Sprintf("node%d", node+1) }

// bridgeMAC is fixed, because a bridge without one takes its ports', and pods
// would send to an address that is gone.
func (a addresses) bridgeMAC(node int) string {
	return fmt.Sprintf("02:57:4c:00:%02x:%02x", int(a), node+1)
}
