package cluster

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os/exec"
	"strings"
)

// errNoRange is returned when every range is in use.
var errNoRange = fmt.Errorf("all of 10.%d.0.0/16 to 10.%d.0.0/16 are in use: end a cluster", firstRange, lastRange)

// run runs a command to its end, and puts what it said into the error.
func run(ctx context.Context, name string, arguments ...string) error {
	out, err := exec.CommandContext(ctx, find(name), arguments...).CombinedOutput()
	if err != nil {
		return fmt.Errorf("%s %s: %w: %s", name, strings.Join(arguments, " "), err, strings.TrimSpace(string(out)))
	}
	return nil
}

// takeRange joins the machine to the network namespace of a process, and returns
// the range that it took for it.
func takeRange(ctx context.Context, pid int) (addresses, error) {
	used, err := net.InterfaceAddrs()
	if err != nil {
		return 0, err
	}
	for i := firstRange; i <= lastRange; i++ {
		a := addresses(i)
		if overlaps(a.all(), used) || interfaceExists(a.link()) {
			continue
		}
		err := run(ctx, "ip", "link", "add", a.link(), "type", "veth", "peer", "name", "machine", "netns", fmt.Sprint(pid))
		if err != nil && interfaceExists(a.link()) {
			continue // Another cluster was faster.
		}
		if err != nil {
			return 0, err
		}
		return a, nil
	}
	return 0, errNoRange
}

func interfaceExists(name string) bool {
	_, err := net.InterfaceByName(name)
	return err == nil
}

func overlaps(p netip.Prefix, used []net.Addr) bool {
	for _, address := range used {
		if q, err := netip.ParsePrefix(address.String()); err == nil && p.Overlaps(q.Masked()) {
			return true
		}
	}
	return false
}

// machineCommands set up the machine's end of the link.
func machineCommands(a addresses) string {
	return fmt.Sprintf("address add %[2]s/30 dev %[1]s\nlink set %[1]s up\nroute add %[3]s via %[4]s\n",
		a.link(), a.machine(), a.all(), a.control())
}

// clusterCommands set up the inside: the link, and a bridge for each node.
func clusterCommands(a addresses, nodes int) string {
	var b strings.Builder
	fmt.Fprintf(&b, "link set lo up\naddress add %s/30 dev machine\nlink set machine up\n", a.control())
	for i := range nodes {
		fmt.Fprintf(&b, "link add %s address %s type bridge\n", bridge(i), a.bridgeMAC(i))
		fmt.Fprintf(&b, "address add %s/%d dev %s\n", a.node(i), a.podsOf(i).Bits(), bridge(i))
		fmt.Fprintf(&b, "link set %s up\n", bridge(i))
	}
	return b.String()
}

// sysctls make the namespace route between pods, and apply services to traffic
// within one bridge too.
const sysctls = `echo 1 >/proc/sys/net/ipv4/ip_forward
if [ -e /proc/sys/net/bridge/bridge-nf-call-iptables ]; then
	echo 1 >/proc/sys/net/bridge/bridge-nf-call-iptables
else
	echo "this kernel does not pass bridged traffic to iptables: load the module br_netfilter" >&2
	exit 1
fi`

// setUpNetwork configures both ends of a range that takeRange has taken.
func setUpNetwork(ctx context.Context, a addresses, pid, nodes int) error {
	if err := runBatch(ctx, machineCommands(a), "ip", "-batch", "-"); err != nil {
		return err
	}
	if err := runBatch(ctx, clusterCommands(a, nodes), "nsenter", within(pid, "ip", "-batch", "-")...); err != nil {
		return err
	}
	return run(ctx, "nsenter", within(pid, "sh", "-c", sysctls)...)
}

// within returns nsenter's arguments for a command in the network namespace of a process.
func within(pid int, command ...string) []string {
	return append([]string{fmt.Sprintf("--net=/proc/%d/ns/net", pid), "--"}, command...)
}

func runBatch(ctx context.Context, input, name string, arguments ...string) error {
	cmd := exec.CommandContext(ctx, find(name), arguments...)
	cmd.Stdin = strings.NewReader(input)
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("setting up the network: %w: %s", err, strings.TrimSpace(string(out)))
	}
	return nil
}

// removeLink takes the machine's end away; the kernel does so too, some time
// after the last process of the namespace has ended.
func removeLink(ctx context.Context, a addresses) error {
	if !interfaceExists(a.link()) {
		return nil
	}
	err := run(ctx, "ip", "link", "delete", a.link())
	if err != nil && !interfaceExists(a.link()) {
		return nil
	}
	return errors.Join(err)
}
