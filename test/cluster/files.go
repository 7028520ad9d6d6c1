package cluster

import (
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"

	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// clients of the API server that have a kubeconfig in etc, and who they are.
var clients = map[string]identity{
	"kube-controller-manager": {user: "system:kube-controller-manager"},
	"kube-scheduler":          {user: "system:kube-scheduler"},
	"kube-proxy":              {user: "system:kube-proxy"},
	"coredns":                 {user: "system:coredns"},
}

// writeFiles writes all that the programs read: certificates, keys and configuration.
func writeFiles(l layout, a addresses, r record) error {
	for _, dir := range []string{l.pki(""), l.etc(""), l.logs(), l.etcd()} {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return err
		}
	}
	ca, err := newAuthority()
	if err != nil {
		return err
	}
	if err := writeKeys(l, a, ca); err != nil {
		return err
	}
	admin := identity{user: "admin", groups: []string{"system:masters"}}
	if err := writeKubeconfig(l.kubeconfig(), a, ca, admin); err != nil {
		return err
	}
	for name, id := range clients {
		if err := writeKubeconfig(l.etc(name+".kubeconfig"), a, ca, id); err != nil {
			return err
		}
	}
	if err := os.WriteFile(l.etc("kube-proxy.json"), proxyConfig(l, a, r.Nodes).render(), 0o600); err != nil {
		return err
	}
	if err := os.WriteFile(l.etc("node.sh"), []byte(nodeScript), 0o600); err != nil {
		return err
	}
	if err := os.WriteFile(l.etc("Corefile"), []byte(corefile(l, a)), 0o600); err != nil {
		return err
	}
	machine, err := machineCapacity()
	if err != nil {
		return err
	}
	for i, n := range r.Nodes {
		if err := writeNodeFiles(l, a, ca, i, n, machine); err != nil {
			return err
		}
	}
	return WriteImage(l.pause(), pauseImage, "pause", filepath.Join(r.Programs, "pause"))
}

func writeKeys(l layout, a addresses, ca *authority) error {
	key, err := privatePEM(ca.key)
	if err != nil {
		return err
	}
	private, public, err := tokenKeys()
	if err != nil {
		return err
	}
	for name, content := range map[string][]byte{"ca.crt": ca.pem, "ca.key": key, "tokens.key": private, "tokens.pub": public} {
		if err := os.WriteFile(l.pki(name), content, 0o600); err != nil {
			return err
		}
	}
	err = ca.writePair(l.pki(""), "kube-apiserver", identity{
		user: "kube-apiserver",
		names: []string{
			"localhost", "kubernetes", "kubernetes.default", "kubernetes.default.svc", "kubernetes.default.svc.cluster.local",
		},
		addresses: []netip.Addr{a.control(), a.apiService(), netip.MustParseAddr("127.0.0.1")},
	})
	if err != nil {
		return err
	}
	return ca.writePair(l.pki(""), "kubelet-client", identity{user: "kube-apiserver-kubelet-client", groups: []string{"system:masters"}})
}

func writeNodeFiles(l layout, a addresses, ca *authority, index int, n Node, machine capacity) error {
	if err := os.MkdirAll(l.nodeFile(n.Name, "cni"), 0o700); err != nil {
		return err
	}
	serving := identity{user: "kubelet-" + n.Name, names: []string{n.Name}, addresses: []netip.Addr{a.node(index)}}
	if err := ca.writePair(l.node(n.Name), "kubelet", serving); err != nil {
		return err
	}
	client := identity{user: "system:node:" + n.Name, groups: []string{"system:nodes"}}
	if err := writeKubeconfig(l.nodeFile(n.Name, "kubelet.kubeconfig"), a, ca, client); err != nil {
		return err
	}
	for name, content := range map[string][]byte{
		"kubelet.json":      kubeletConfig(l, a, index, n, machine).render(),
		"containerd.toml":   []byte(containerdConfig(l, n.Name)),
		"cni/pods.conflist": networkConfig(a, index).render(),
	} {
		if err := os.WriteFile(l.nodeFile(n.Name, name), content, 0o600); err != nil {
			return err
		}
	}
	return nil
}

func writeKubeconfig(path string, a addresses, ca *authority, id identity) error {
	certificate, key, err := ca.issue(id)
	if err != nil {
		return err
	}
	config := clientcmdapi.NewConfig()
	config.Clusters["windlass-test"] = &clientcmdapi.Cluster{
		Server: fmt.Sprintf("https://%s:%d", a.control(), apiPort), CertificateAuthorityData: ca.pem,
	}
	config.AuthInfos[id.user] = &clientcmdapi.AuthInfo{ClientCertificateData: certificate, ClientKeyData: key}
	config.Contexts["windlass-test"] = &clientcmdapi.Context{Cluster: "windlass-test", AuthInfo: id.user}
	config.CurrentContext = "windlass-test"
	return clientcmd.WriteToFile(*config, path)
}

// machineCapacity is what a kubelet will find here.
func machineCapacity() (capacity, error) {
	text, err := os.ReadFile("/proc/meminfo")
	if err != nil {
		return capacity{}, err
	}
	for line := range strings.Lines(string(text)) {
		if fields := strings.Fields(line); len(fields) >= 2 && fields[0] == "MemTotal:" {
			kib, err := strconv.Atoi(fields[1])
			return capacity{milliCPU: 1000 * runtime.NumCPU(), memoryMiB: kib / 1024, podCgroups: havePodCgroups("/sys/fs/cgroup")}, err
		}
	}
	return capacity{}, fmt.Errorf("/proc/meminfo has no MemTotal")
}

// havePodCgroups tells whether kubelets can make a cgroup for each pod: they insist on these
// controllers. It was tried with version 1 only.
func havePodCgroups(root string) bool {
	for _, controller := range []string{"cpu", "cpuacct", "cpuset", "memory"} {
		if _, err := os.Stat(filepath.Join(root, controller, "cgroup.procs")); err != nil {
			return false
		}
	}
	return true
}
