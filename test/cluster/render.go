package cluster

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
)

const (
	pauseImage  = "localhost/windlass-pause:1"
	etcdClient  = "http://127.0.0.1:2379"
	etcdPeer    = "http://127.0.0.1:2380"
	issuer      = "https://kubernetes.default.svc.cluster.local"
	apiPort     = 6443
	dnsReady    = 8181
	pluginsPath = "/usr/lib/cni"
)

// object is a document in JSON, which every reader of YAML takes.
type object map[string]any

func (o object) render() []byte {
	text, err := json.MarshalIndent(o, "", "  ")
	if err != nil {
		panic(err) // The values are plain.
	}
	return append(text, '\n')
}

func etcdArguments(l layout) []string {
	return []string{
		"--name=etcd", "--data-dir=" + l.etcd(),
		"--listen-client-urls=" + etcdClient, "--advertise-client-urls=" + etcdClient,
		"--listen-peer-urls=" + etcdPeer, "--initial-advertise-peer-urls=" + etcdPeer,
		"--initial-cluster=etcd=" + etcdPeer,
		// What a power cut loses here, nobody wants back.
		"--unsafe-no-fsync",
	}
}

func apiserverArguments(l layout, a addresses) []string {
	return []string{
		"--advertise-address=" + a.control().String(),
		fmt.Sprintf("--secure-port=%d", apiPort),
		"--etcd-servers=" + etcdClient,
		"--service-cluster-ip-range=" + a.services().String(),
		"--service-account-issuer=" + issuer,
		"--service-account-key-file=" + l.pki("tokens.pub"),
		"--service-account-signing-key-file=" + l.pki("tokens.key"),
		"--client-ca-file=" + l.pki("ca.crt"),
		"--tls-cert-file=" + l.pki("kube-apiserver.crt"),
		"--tls-private-key-file=" + l.pki("kube-apiserver.key"),
		"--kubelet-certificate-authority=" + l.pki("ca.crt"),
		"--kubelet-client-certificate=" + l.pki("kubelet-client.crt"),
		"--kubelet-client-key=" + l.pki("kubelet-client.key"),
		"--kubelet-preferred-address-types=InternalIP",
		"--authorization-mode=Node,RBAC",
		"--enable-admission-plugins=NodeRestriction",
		"--allow-privileged=true",
		"--profiling=false",
	}
}

func controllerManagerArguments(l layout) []string {
	return []string{
		"--kubeconfig=" + l.etc("kube-controller-manager.kubeconfig"),
		"--authentication-kubeconfig=" + l.etc("kube-controller-manager.kubeconfig"),
		"--authorization-kubeconfig=" + l.etc("kube-controller-manager.kubeconfig"),
		"--bind-address=127.0.0.1",
		"--leader-elect=false",
		"--use-service-account-credentials=true",
		"--root-ca-file=" + l.pki("ca.crt"),
		"--service-account-private-key-file=" + l.pki("tokens.key"),
		"--cluster-signing-cert-file=" + l.pki("ca.crt"),
		"--cluster-signing-key-file=" + l.pki("ca.key"),
		"--allocate-node-cidrs=false",
		// Not below /usr, where it would stay.
		"--flex-volume-plugin-dir=" + l.etc("volume-plugins"),
		// A dead node is seen within 14 s, instead of 50.
		"--node-monitor-period=2s",
		"--node-monitor-grace-period=12s",
		// An autoscaler looks this often, instead of every 15 s.
		"--horizontal-pod-autoscaler-sync-period=2s",
		"--kube-api-qps=100", "--kube-api-burst=200",
		"--profiling=false",
	}
}

func schedulerArguments(l layout) []string {
	return []string{
		"--kubeconfig=" + l.etc("kube-scheduler.kubeconfig"),
		"--authentication-kubeconfig=" + l.etc("kube-scheduler.kubeconfig"),
		"--authorization-kubeconfig=" + l.etc("kube-scheduler.kubeconfig"),
		"--bind-address=127.0.0.1",
		"--leader-elect=false",
		"--kube-api-qps=200", "--kube-api-burst=400",
		"--profiling=false",
	}
}

func kubeletArguments(l layout, a addresses, index int, n Node) []string {
	arguments := []string{
		"--config=" + l.nodeFile(n.Name, "kubelet.json"),
		"--kubeconfig=" + l.nodeFile(n.Name, "kubelet.kubeconfig"),
		"--hostname-override=" + n.Name,
		"--node-ip=" + a.node(index).String(),
		"--housekeeping-interval=30s",
	}
	if len(n.Labels) > 0 {
		pairs := make([]string, 0, len(n.Labels))
		for _, key := range slices.Sorted(maps.Keys(n.Labels)) {
			pairs = append(pairs, key+"="+n.Labels[key])
		}
		arguments = append(arguments, "--node-labels="+strings.Join(pairs, ","))
	}
	return arguments
}

// capacity is what the machine has.
type capacity struct {
	milliCPU  int
	memoryMiB int
	// podCgroups says that kubelets can make a cgroup for each pod.
	podCgroups bool
}

func kubeletConfig(l layout, a addresses, index int, n Node, machine capacity) object {
	address := a.node(index).String()
	config := object{
		"apiVersion": "kubelet.config.k8s.io/v1beta1",
		"kind":       "KubeletConfiguration",

		"address":            address,
		"healthzBindAddress": address,
		"tlsCertFile":        l.nodeFile(n.Name, "kubelet.crt"),
		"tlsPrivateKeyFile":  l.nodeFile(n.Name, "kubelet.key"),
		"authentication": object{
			"anonymous": object{"enabled": false},
			"webhook":   object{"enabled": true},
			"x509":      object{"clientCAFile": l.pki("ca.crt")},
		},
		"authorization": object{"mode": "Webhook"},

		"containerRuntimeEndpoint": "unix:///run/containerd/containerd.sock",
		// Not below /usr, where it would stay.
		"volumePluginDir": "/var/lib/kubelet/volume-plugins",
		"clusterDomain":   "cluster.local",
		"clusterDNS":      []string{a.control().String()},
		"resolvConf":      "",
		"maxPods":         n.maxPods(),

		// The machine may mount either version of cgroups, and with few controllers.
		"cgroupDriver":                     "cgroupfs",
		"cgroupsPerQOS":                    machine.podCgroups,
		"enforceNodeAllocatable":           []string{},
		"localStorageCapacityIsolation":    false,
		"failSwapOn":                       false,
		"makeIPTablesUtilChains":           false,
		"protectKernelDefaults":            false,
		"imageGCHighThresholdPercent":      100,
		"imageGCLowThresholdPercent":       99,
		"evictionHard":                     object{"memory.available": "0%", "nodefs.available": "0%", "nodefs.inodesFree": "0%", "imagefs.available": "0%"},
		"evictionPressureTransitionPeriod": "1s",

		"nodeStatusUpdateFrequency":                 "3s",
		"nodeStatusReportFrequency":                 "1m",
		"nodeLeaseDurationSeconds":                  8,
		"configMapAndSecretChangeDetectionStrategy": "Watch",
		"serializeImagePulls":                       false,
		"registryPullQPS":                           0,
		"kubeAPIQPS":                                100,
		"kubeAPIBurst":                              200,
		"eventRecordQPS":                            100,
		"eventBurst":                                200,
	}
	if reserved := n.reserved(machine); len(reserved) > 0 {
		config["systemReserved"] = reserved
	}
	return config
}

// reserved is what to hold back of the machine so that pods get what n says.
func (n Node) reserved(machine capacity) object {
	reserved := object{}
	if n.MilliCPU > 0 && n.MilliCPU < machine.milliCPU {
		reserved["cpu"] = fmt.Sprintf("%dm", machine.milliCPU-n.MilliCPU)
	}
	if n.MemoryMiB > 0 && n.MemoryMiB < machine.memoryMiB {
		reserved["memory"] = fmt.Sprintf("%dMi", machine.memoryMiB-n.MemoryMiB)
	}
	return reserved
}

// cgroup holds the cgroups of all containers of a cluster.
func cgroup(a addresses) string { return "/" + a.link() }

func containerdConfig(l layout, node string) string {
	return `version = 2
disabled_plugins = ["io.containerd.internal.v1.opt"]

[plugins."io.containerd.grpc.v1.cri"]
  sandbox_image = "` + pauseImage + `"
  restrict_oom_score_adj = true
  [plugins."io.containerd.grpc.v1.cri".cni]
    bin_dir = "` + pluginsPath + `"
    conf_dir = "` + l.nodeFile(node, "cni") + `"
  [plugins."io.containerd.grpc.v1.cri".registry]
    config_path = "` + l.registries() + `"
`
}

// registryConfig tells containerd where a registry is; it is read again at each pull.
// Before 1.7, containerd takes no file without a host.
func registryConfig(url string) string {
	return fmt.Sprintf("server = %[1]q\n[host.%[1]q]\n  capabilities = [\"pull\", \"resolve\"]\n", url)
}

func networkConfig(a addresses, node int) object {
	return object{
		"cniVersion": "0.4.0",
		"name":       "pods",
		"plugins": []object{
			{
				"type": "bridge", "bridge": bridge(node), "isGateway": true, "hairpinMode": true,
				"ipam": object{
					"type":    "host-local",
					"dataDir": "/run/cni-addresses",
					"ranges":  [][]object{{{"subnet": a.podsOf(node).String()}}},
					"routes":  []object{{"dst": "0.0.0.0/0"}},
				},
			},
			{"type": "portmap", "capabilities": object{"portMappings": true}},
		},
	}
}

func proxyConfig(l layout, a addresses, nodes []Node) object {
	return object{
		"apiVersion":       "kubeproxy.config.k8s.io/v1alpha1",
		"kind":             "KubeProxyConfiguration",
		"mode":             "iptables",
		"hostnameOverride": nodes[0].Name,
		"bindAddress":      "0.0.0.0",
		"clientConnection": object{"kubeconfig": l.etc("kube-proxy.kubeconfig")},
		"detectLocalMode":  "ClusterCIDR",
		"clusterCIDR":      a.pods().String(),
		"iptables":         object{"minSyncPeriod": "100ms", "syncPeriod": "30s"},
		// The limits of conntrack are the machine's, not a namespace's.
		"conntrack": object{"maxPerCore": 0, "min": 0, "tcpEstablishedTimeout": "0s", "tcpCloseWaitTimeout": "0s"},
	}
}

func corefile(l layout, a addresses) string {
	return fmt.Sprintf(`.:53 {
    bind %[1]s
    errors
    ready %[1]s:%[2]d
    kubernetes cluster.local in-addr.arpa {
        kubeconfig %[3]s
        pods insecure
        ttl 1
    }
    template IN ANY . {
        rcode NXDOMAIN
    }
}
`, a.control(), dnsReady, l.etc("coredns.kubeconfig"))
}
