package controller

import (
	"net/netip"
	"slices"
	"strings"
	"testing"

	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
)

// destination is where a connection leads to: an address outside the cluster, or a pod.
type destination struct {
	addr      string
	namespace string
	labels    labels.Set
	port      int32
}

// lets says whether the policy lets an instance connect.
func lets(t *testing.T, spec networkingv1.NetworkPolicySpec, to destination) bool {
	t.Helper()
	if !slices.Contains(spec.PolicyTypes, networkingv1.PolicyTypeEgress) {
		return true
	}
	return slices.ContainsFunc(spec.Egress, func(rule networkingv1.NetworkPolicyEgressRule) bool {
		onPort := len(rule.Ports) == 0 || slices.ContainsFunc(rule.Ports, func(p networkingv1.NetworkPolicyPort) bool { return p.Port.IntVal == to.port })
		return onPort && (len(rule.To) == 0 || slices.ContainsFunc(rule.To, func(peer networkingv1.NetworkPolicyPeer) bool {
			if peer.IPBlock != nil {
				return to.addr != "" && within(peer.IPBlock, netip.MustParseAddr(to.addr))
			}
			named := labels.Set{"kubernetes.io/metadata.name": to.namespace}
			return to.addr == "" && matches(t, peer.NamespaceSelector, named) && matches(t, peer.PodSelector, to.labels)
		}))
	})
}

func within(block *networkingv1.IPBlock, addr netip.Addr) bool {
	in := func(cidr string) bool { return netip.MustParsePrefix(cidr).Contains(addr) }
	return in(block.CIDR) && !slices.ContainsFunc(block.Except, in)
}

// apiServerAccepts fails the test if the API server would refuse a block of the policy
// (ValidateIPBlock).
func apiServerAccepts(t *testing.T, spec networkingv1.NetworkPolicySpec) {
	t.Helper()
	for _, rule := range spec.Egress {
		for _, peer := range rule.To {
			if peer.IPBlock == nil {
				continue
			}
			block := netip.MustParsePrefix(peer.IPBlock.CIDR)
			for _, cidr := range peer.IPBlock.Except {
				except := netip.MustParsePrefix(cidr)
				if except.Addr().Is4In6() || except != except.Masked() || !block.Contains(except.Addr()) || block.Bits() >= except.Bits() {
					t.Errorf("%s is no strict subset of %s", except, block)
				}
			}
		}
	}
}

func matches(t *testing.T, s *metav1.LabelSelector, set labels.Set) bool {
	t.Helper()
	if s == nil {
		return true
	}
	selector, err := metav1.LabelSelectorAsSelector(s)
	if err != nil {
		t.Fatal(err)
	}
	return selector.Matches(set)
}

func TestS12TheEgressOfFunctionsIsAsConfigured(t *testing.T) {
	of := func(component string) labels.Set {
		return labels.Set{"app.kubernetes.io/part-of": "windlass", "app.kubernetes.io/component": component}
	}
	to := map[string]destination{
		"a scheduler":         {namespace: "home", labels: of("scheduler"), port: 9443},
		"a node agent":        {namespace: "home", labels: of("node"), port: 9443},
		"a gateway":           {namespace: "home", labels: of("gateway"), port: 8080},
		"DNS":                 {namespace: "kube-system", labels: labels.Set{"k8s-app": "kube-dns"}, port: 53},
		"a cache of DNS":      {addr: "169.254.20.10", port: 53},
		"etcd":                {namespace: "home", labels: of("etcd"), port: 2381},
		"a gateway elsewhere": {namespace: "team", labels: of("gateway"), port: 8080},
		"a shop":              {namespace: "shop", labels: labels.Set{"app": "shop"}, port: 80},
		"metadata":            {addr: "169.254.169.254", port: 80},
		"a kubelet":           {addr: "10.0.0.7", port: 10250},
		"metadata over IPv6":  {addr: "fd00:ec2::254", port: 80},
		"the internet":        {addr: "93.184.216.34", port: 443},
		"IPv6":                {addr: "2606:2800:220::1", port: 443},
		"a denied network":    {addr: "203.0.113.9", port: 443},
		"it by NAT64":         {addr: "64:ff9b::203.0.113.9", port: 443},
		"internet by NAT64":   {addr: "64:ff9b::93.184.216.34", port: 443},
	}
	// What gives out the credentials of nodes, or leads to it.
	notPublic := []string{"metadata", "metadata over IPv6", "a kubelet"}
	for _, addr := range []string{
		"168.63.129.16", "192.0.0.192", "100.100.100.200", "240.0.0.1", "198.18.0.1", "fd20:ce::254", "64:ff9b:1::1",
		"64:ff9b::169.254.169.254", "64:ff9b::10.0.0.7", "64:ff9b::168.63.129.16",
	} {
		to[addr] = destination{addr: addr, port: 80}
		notPublic = append(notPublic, addr)
	}
	always := []string{"a scheduler", "a node agent", "a gateway", "DNS", "a cache of DNS"}
	inCluster := []string{"etcd", "a gateway elsewhere", "a shop"}
	outside := func(are func(netip.Addr) bool) (names []string) {
		for name, destination := range to {
			if destination.addr != "" && are(netip.MustParseAddr(destination.addr)) && !slices.Contains(always, name) {
				names = append(names, name)
			}
		}
		return names
	}
	for name, test := range map[string]struct {
		egress Egress
		closed []string
	}{
		"the default":     {Egress{}, nil},
		"open":            {Egress{Mode: EgressOpen}, nil},
		"open but some":   {Egress{Mode: EgressOpen, Except: []string{"169.254.0.0/16", "fd00:ec2::/32", "203.0.113.0/24"}}, []string{"metadata", "metadata over IPv6", "a denied network", "it by NAT64", "64:ff9b::169.254.169.254"}},
		"the internet":    {Egress{Mode: EgressInternet}, slices.Concat(notPublic, inCluster)},
		"internet but":    {Egress{Mode: EgressInternet, Except: []string{"203.0.113.0/24"}}, slices.Concat(notPublic, inCluster, []string{"a denied network", "it by NAT64"})},
		"open but IPv6":   {Egress{Mode: EgressOpen, Except: []string{"::/0"}}, outside(netip.Addr.Is6)},
		"open but IPv4":   {Egress{Mode: EgressOpen, Except: []string{"10.0.0.0/8", "0.0.0.0/0"}}, slices.Concat(outside(netip.Addr.Is4), outside(netip.MustParsePrefix("64:ff9b::/96").Contains))},
		"pods only":       {Egress{Mode: EgressOpen, Except: []string{"::1/0", "10.0.0.1/0"}}, outside(netip.Addr.IsValid)},
		"internet by v4":  {Egress{Mode: EgressInternet, Except: []string{"::/0"}}, slices.Concat(notPublic, inCluster, outside(netip.Addr.Is6))},
		"no internet":     {Egress{Mode: EgressInternet, Except: []string{"0.0.0.0/0", "::/0"}}, slices.Concat(inCluster, outside(netip.Addr.IsValid))},
		"nothing further": {Egress{Mode: EgressNone}, slices.Concat(notPublic, inCluster, []string{"a denied network", "it by NAT64", "the internet", "internet by NAT64", "IPv6"})},
	} {
		t.Run(name, func(t *testing.T) {
			if err := test.egress.Validate(); err != nil {
				t.Fatal(err)
			}
			spec := policySpec("home", test.egress)
			if len(spec.Ingress) != 0 || !slices.Contains(spec.PolicyTypes, networkingv1.PolicyTypeIngress) {
				t.Errorf("it lets in %v", spec.Ingress)
			}
			apiServerAccepts(t, spec)
			for name, destination := range to {
				if got := lets(t, spec, destination); got == slices.Contains(test.closed, name) || slices.Contains(always, name) && !got {
					t.Errorf("instances reach %s: %v", name, got)
				}
			}
		})
	}
	for want, wrong := range map[string]Egress{
		"not one of Open, Internet and None": {Mode: "closed"},
		"no network":                         {Except: []string{"10.0.0.1"}},
		"NetworkPolicy: write 10.0.0.0/8":    {Except: []string{"::ffff:10.0.0.0/104"}},
		"NetworkPolicy: write 0.0.0.0/0":     {Except: []string{"::ffff:10.0.0.0/96"}},
	} {
		if err := wrong.Validate(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%+v: %v", wrong, err)
		}
	}
}
