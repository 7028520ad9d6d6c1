package cluster

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// programs of the folder that binaries.sh fills.
var programs = []string{
	"coredns", "etcd", "kube-apiserver", "kube-controller-manager", "kube-proxy", "kube-scheduler", "kubectl", "kubelet", "pause",
}

// requirement is a program of the machine, and Debian's package of it.
type requirement struct{ program, debian string }

var requirements = []requirement{
	{"containerd", "containerd"},
	{"containerd-shim-runc-v2", "containerd"},
	{"ctr", "containerd"},
	{"runc", "runc"},
	{pluginsPath + "/bridge", "containernetworking-plugins"},
	{pluginsPath + "/host-local", "containernetworking-plugins"},
	{pluginsPath + "/loopback", "containernetworking-plugins"},
	{pluginsPath + "/portmap", "containernetworking-plugins"},
	{"iptables", "iptables"},
	{"conntrack", "conntrack"},
	{"ip", "iproute2"},
	{"nsenter", "util-linux"},
	{"unshare", "util-linux"},
	{"mount", "mount"},
}

// Missing says why a cluster cannot be started here, with the remedy; it is nil
// where one can.
func Missing(folder string) error {
	if folder == "" {
		folder = ProgramsFolder()
	}
	var errs []error
	if os.Geteuid() != 0 {
		errs = append(errs, errors.New("a cluster needs root: network and mount namespaces, and containers"))
	}
	absent, packages := missing(requirements, func(program string) bool {
		_, err := os.Stat(find(program))
		return err == nil
	})
	if len(absent) > 0 {
		errs = append(errs, fmt.Errorf("%s not found: apt-get install %s", strings.Join(absent, ", "), strings.Join(packages, " ")))
	}
	for _, name := range programs {
		if _, err := os.Stat(filepath.Join(folder, name)); err != nil {
			errs = append(errs, fmt.Errorf("%s is not in %s: run make cluster-binaries", name, folder))
			break
		}
	}
	return errors.Join(errs...)
}

func missing(wanted []requirement, found func(string) bool) (absent, packages []string) {
	for _, r := range wanted {
		if found(r.program) {
			continue
		}
		absent = append(absent, r.program)
		if !slices.Contains(packages, r.debian) {
			packages = append(packages, r.debian)
		}
	}
	return absent, packages
}

// searchPath is where programs are looked for, by us and by those we start: the
// PATH of a shell that became root often lacks half of it.
const searchPath = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

// find returns the path of a program, or its name if there is none.
func find(program string) string {
	for _, dir := range filepath.SplitList(searchPath) {
		path := filepath.Join(dir, program)
		if info, err := os.Stat(path); err == nil && !info.IsDir() {
			return path
		}
	}
	return program
}
