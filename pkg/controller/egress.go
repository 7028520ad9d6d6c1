package controller

import (
	"fmt"
	"net/netip"
	"slices"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/windlass-dev/windlass/api/wellknown"
)

// EgressMode says where instances may connect to.
type EgressMode string

// The modes of egress. Whatever the mode, instances reach DNS and the gateways,
// schedulers and node agents of Windlass.
const (
	// EgressOpen lets instances connect to all pods, and to everything else but Egress.Except.
	EgressOpen EgressMode = "Open"
	// EgressInternet lets them connect to public addresses but Egress.Except.
	EgressInternet EgressMode = "Internet"
	// EgressNone lets them connect to nothing else.
	EgressNone EgressMode = "None"
)

// Egress is the part of the functions' NetworkPolicy about outgoing connections.
type Egress struct {
	// Mode is one of the three; empty means EgressOpen.
	Mode EgressMode
	// Except are networks, as CIDRs, to which instances may not connect.
	Except []string
}

// Validate returns an error that names the invalid settings.
func (e Egress) Validate() error {
	switch e.Mode {
	case "", EgressOpen, EgressInternet, EgressNone:
	default:
		return fmt.Errorf("the egress of functions %q is not one of Open, Internet and None", e.Mode)
	}
	for _, cidr := range e.Except {
		prefix, err := netip.ParsePrefix(cidr)
		if err != nil {
			return fmt.Errorf("the egress of functions excepts %q, which is no network: write for example 169.254.0.0/16", cidr)
		}
		if network := prefix.Masked(); network.Addr().Is4In6() {
			v4 := netip.PrefixFrom(network.Addr().Unmap(), network.Bits()-96)
			return fmt.Errorf("the egress of functions excepts %q, which Kubernetes refuses in a NetworkPolicy: write %s", cidr, v4)
		}
	}
	return nil
}

// notPublic are the networks that are not the internet: private ones (RFC 1918, 4193),
// carriers' (RFC 6598), loopback and link-local ones, in which clouds have their
// metadata, and those for protocols, benchmarks and later use (RFC 6890); besides, the address of
// Azure's agents of nodes, and local translations of IPv4 (RFC 8215).
var notPublic = []string{
	"10.0.0.0/8", "100.64.0.0/10", "127.0.0.0/8", "169.254.0.0/16", "172.16.0.0/12", "192.168.0.0/16",
	"192.0.0.0/24", "198.18.0.0/15", "240.0.0.0/4", "168.63.129.16/32",
	"::1/128", "fc00::/7", "fe80::/10", "64:ff9b:1::/48",
}

// policySpec lets nothing in, and out what e says. Windlass itself is in the
// namespace home.
func policySpec(home string, e Egress) networkingv1.NetworkPolicySpec {
	spec := networkingv1.NetworkPolicySpec{
		PodSelector: instances,
		PolicyTypes: []networkingv1.PolicyType{networkingv1.PolicyTypeIngress},
	}
	if e.Mode != EgressInternet && e.Mode != EgressNone && len(e.Except) == 0 {
		return spec
	}
	spec.PolicyTypes = append(spec.PolicyTypes, networkingv1.PolicyTypeEgress)
	spec.Egress = []networkingv1.NetworkPolicyEgressRule{toDNS(), toWindlass(home)}
	switch e.Mode {
	case EgressNone:
	case EgressInternet:
		// A rule that names no destination would allow all of them.
		if public := allAddressesBut(slices.Concat(notPublic, e.Except)); len(public) > 0 {
			spec.Egress = append(spec.Egress, networkingv1.NetworkPolicyEgressRule{To: public})
		}
	default:
		// A block of addresses alone does not select pods in every implementation.
		pods := networkingv1.NetworkPolicyPeer{NamespaceSelector: &metav1.LabelSelector{}}
		spec.Egress = append(spec.Egress, networkingv1.NetworkPolicyEgressRule{To: append(allAddressesBut(e.Except), pods)})
	}
	return spec
}

// toDNS names no pods: caches on the nodes have addresses of their own. Port 5353 is
// that of OpenShift's pods.
func toDNS() networkingv1.NetworkPolicyEgressRule {
	var rule networkingv1.NetworkPolicyEgressRule
	for _, number := range []int32{53, 5353} {
		rule.Ports = append(rule.Ports, port(corev1.ProtocolUDP, number), port(corev1.ProtocolTCP, number))
	}
	return rule
}

// toWindlass lets agents pull, and functions call others.
func toWindlass(home string) networkingv1.NetworkPolicyEgressRule {
	return networkingv1.NetworkPolicyEgressRule{
		Ports: []networkingv1.NetworkPolicyPort{port(corev1.ProtocolTCP, 9443), port(corev1.ProtocolTCP, 8080)},
		To: []networkingv1.NetworkPolicyPeer{{
			NamespaceSelector: &metav1.LabelSelector{MatchLabels: map[string]string{corev1.LabelMetadataName: home}},
			PodSelector: &metav1.LabelSelector{
				MatchLabels: map[string]string{"app.kubernetes.io/part-of": "windlass"},
				MatchExpressions: []metav1.LabelSelectorRequirement{{
					Key: wellknown.LabelComponent, Operator: metav1.LabelSelectorOpIn, Values: []string{"gateway", "node", "scheduler"},
				}},
			},
		}},
	}
}

func port(protocol corev1.Protocol, number int32) networkingv1.NetworkPolicyPort {
	return networkingv1.NetworkPolicyPort{Protocol: &protocol, Port: new(intstr.FromInt32(number))}
}

// allAddressesBut are all addresses of both families except some valid networks. An IPv4 network
// has an IPv6 one where a NAT64 leads to it. A family that is excepted as a whole has no block:
// the API server refuses a policy with a block that excepts all of itself.
func allAddressesBut(networks []string) []networkingv1.NetworkPolicyPeer {
	v4, v6 := &networkingv1.IPBlock{CIDR: "0.0.0.0/0"}, &networkingv1.IPBlock{CIDR: "::/0"}
	for _, network := range networks {
		// An API server with StrictIPCIDRValidation refuses bits behind the prefix.
		prefix := netip.MustParsePrefix(network).Masked()
		if prefix.Addr().Is4() {
			v4.Except = append(v4.Except, prefix.String())
			prefix = nat64(prefix)
		}
		v6.Except = append(v6.Except, prefix.String())
	}
	var peers []networkingv1.NetworkPolicyPeer
	for _, block := range []*networkingv1.IPBlock{v4, v6} {
		if !slices.Contains(block.Except, block.CIDR) {
			peers = append(peers, networkingv1.NetworkPolicyPeer{IPBlock: block})
		}
	}
	return peers
}

// nat64 is the part of 64:ff9b::/96 that is translated to an IPv4 network (RFC 6052). The rest of
// it is the way to the internet in clusters without IPv4.
func nat64(network netip.Prefix) netip.Prefix {
	const bits = 96
	from, to := network.Addr().As4(), netip.MustParseAddr("64:ff9b::").As16()
	copy(to[bits/8:], from[:])
	return netip.PrefixFrom(netip.AddrFrom16(to), bits+network.Bits())
}
