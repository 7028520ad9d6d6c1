package cluster

import (
	"encoding/json"
	"net"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestAddressesOfOneClusterDoNotOverlap(t *testing.T) {
	for i := firstRange; i <= lastRange; i++ {
		a := addresses(i)
		prefixes := []netip.Prefix{netip.PrefixFrom(a.at(0, 0), 30), a.services()}
		for node := range maxNodes {
			prefixes = append(prefixes, a.podsOf(node))
			if !a.podsOf(node).Contains(a.node(node)) || !a.pods().Contains(a.node(node)) {
				t.Fatalf("node %d at %v is outside %v or %v", node, a.node(node), a.podsOf(node), a.pods())
			}
		}
		for j, p := range prefixes {
			if p != p.Masked() || !a.all().Overlaps(p) {
				t.Fatalf("%v is no range within %v", p, a.all())
			}
			for _, q := range prefixes[j+1:] {
				if p.Overlaps(q) {
					t.Fatalf("%v and %v overlap", p, q)
				}
			}
		}
		if a.pods().Overlaps(a.services()) || !a.services().Contains(a.apiService()) {
			t.Fatalf("pods in %v, services in %v, the API in %v", a.pods(), a.services(), a.apiService())
		}
		if len(a.link()) > 15 {
			t.Fatalf("the name %q is too long for an interface", a.link())
		}
	}
}

func TestARangeInUseIsSeen(t *testing.T) {
	used := []net.Addr{&net.IPNet{IP: net.IPv4(10, 201, 7, 1), Mask: net.CIDRMask(24, 32)}}
	if !overlaps(addresses(201).all(), used) || overlaps(addresses(202).all(), used) {
		t.Error("10.201.7.1/24 must keep a cluster out of 10.201.0.0/16, and only out of that")
	}
}

func TestConfigSaysWhatIsWrong(t *testing.T) {
	for name, test := range map[string]struct {
		config Config
		want   string
	}{
		"nothing is":               {Config{Nodes: Nodes(3)}, ""},
		"no nodes":                 {Config{}, "want 1 to 30"},
		"too many nodes":           {Config{Nodes: Nodes(31)}, "want 1 to 30"},
		"a name twice":             {Config{Nodes: []Node{{Name: "a"}, {Name: "a"}}}, `two have the name "a"`},
		"a name no host has":       {Config{Nodes: []Node{{Name: "Node_1"}}}, `name "Node_1"`},
		"too many pods":            {Config{Nodes: []Node{{Name: "a", MaxPods: 2000}}}, "MaxPods"},
		"a relative folder":        {Config{State: "here", Nodes: Nodes(1)}, "absolute"},
		"a folder of the system":   {Config{State: "/var", Nodes: Nodes(1)}, "below"},
		"a folder with a long way": {Config{State: "/" + strings.Repeat("a/", 30) + "b", Nodes: Nodes(1)}, "too long"},
	} {
		t.Run(name, func(t *testing.T) {
			err := test.config.Validate()
			if (err == nil) != (test.want == "") || err != nil && !strings.Contains(err.Error(), test.want) {
				t.Errorf("got %v, want %q", err, test.want)
			}
		})
	}
}

func TestAKubeletHoldsBackWhatPodsMayNotHave(t *testing.T) {
	machine := capacity{milliCPU: 4000, memoryMiB: 8000}
	for name, test := range map[string]struct {
		node Node
		want object
	}{
		"nothing by default":           {Node{}, object{}},
		"the rest":                     {Node{MilliCPU: 500, MemoryMiB: 1000}, object{"cpu": "3500m", "memory": "7000Mi"}},
		"nothing of a machine's whole": {Node{MilliCPU: 4000, MemoryMiB: 9000}, object{}},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(test.want, test.node.reserved(machine)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestTheKubeletTrustsNobodyUnknown(t *testing.T) {
	var config struct {
		Authentication struct {
			Anonymous, Webhook struct{ Enabled bool }
			X509               struct{ ClientCAFile string }
		}
		Authorization struct{ Mode string }
		ClusterDNS    []string
		MaxPods       int
	}
	text := kubeletConfig(layout{"/s"}, 200, 0, Node{Name: "a", MaxPods: 7}, capacity{}).render()
	if err := json.Unmarshal(text, &config); err != nil {
		t.Fatal(err)
	}
	if config.Authentication.Anonymous.Enabled || !config.Authentication.Webhook.Enabled || config.Authorization.Mode != "Webhook" ||
		config.Authentication.X509.ClientCAFile != "/s/pki/ca.crt" {
		t.Errorf("the kubelet asks nobody who they are: %s", text)
	}
	if config.MaxPods != 7 || !slices.Equal(config.ClusterDNS, []string{"10.200.0.1"}) {
		t.Errorf("the kubelet has %d pods and DNS at %v", config.MaxPods, config.ClusterDNS)
	}
}

func TestArgumentsOfAKubelet(t *testing.T) {
	got := kubeletArguments(layout{"/s"}, 200, 1, Node{Name: "a", Labels: map[string]string{"y": "2", "x": "1"}})
	want := []string{
		"--config=/s/nodes/a/kubelet.json", "--kubeconfig=/s/nodes/a/kubelet.kubeconfig", "--hostname-override=a",
		"--node-ip=10.200.8.1", "--housekeeping-interval=30s", "--node-labels=x=1,y=2",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestEachNodeHasItsBridge(t *testing.T) {
	got := clusterCommands(200, 2)
	want := `link set lo up
address add 10.200.0.1/30 dev machine
link set machine up
link add node1 address 02:57:4c:00:c8:01 type bridge
address add 10.200.4.1/22 dev node1
link set node1 up
link add node2 address 02:57:4c:00:c8:02 type bridge
address add 10.200.8.1/22 dev node2
link set node2 up
`
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestWhatIsMissingIsNamedOnceForEachPackage(t *testing.T) {
	absent, packages := missing(requirements, func(program string) bool { return program != "ctr" && program != "containerd" && program != "iptables" })
	if !slices.Equal(absent, []string{"containerd", "ctr", "iptables"}) || !slices.Equal(packages, []string{"containerd", "iptables"}) {
		t.Errorf("missing are %v in %v", absent, packages)
	}
}
