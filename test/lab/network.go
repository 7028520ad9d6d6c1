package lab

import (
	"context"
	"fmt"
	"net/netip"
	"os"
	"strings"
)

// How a packet that must not pass is treated.
const (
	// Silently drops it, as a broken cable does.
	Silently = "DROP"
	// Resetting answers that nobody is there.
	Resetting = "REJECT --reject-with tcp-reset"
)

// rule adds a rule to the space's firewall.
func (s *Space) rule(ctx context.Context, rule string) error {
	return s.Command(ctx, "iptables", append([]string{"--wait"}, strings.Fields(rule)...)...)
}

// Deafen makes the space not hear the others: their packets do not arrive, while
// its own do.
func (s *Space) Deafen(ctx context.Context, how string, others ...*Space) error {
	for _, other := range others {
		if err := s.rule(ctx, fmt.Sprintf("-I INPUT -s %s%s -j %s", other.Addr, protocol(how), how)); err != nil {
			return err
		}
	}
	return nil
}

// Sever lets no packet pass between the space and the others.
func (s *Space) Sever(ctx context.Context, how string, others ...*Space) error {
	for _, other := range others {
		if err := s.Deafen(ctx, how, other); err != nil {
			return err
		}
		if err := s.rule(ctx, fmt.Sprintf("-I OUTPUT -d %s -j DROP", other.Addr)); err != nil {
			return err
		}
	}
	return nil
}

// Isolate lets no packet in or out, but to the lab itself, which has to watch.
func (s *Space) Isolate(ctx context.Context) error {
	for _, rule := range []string{
		fmt.Sprintf("-I INPUT ! -s %s -j DROP", ownAddr), fmt.Sprintf("-I OUTPUT ! -d %s -j DROP", ownAddr),
	} {
		if err := s.rule(ctx, rule); err != nil {
			return err
		}
	}
	return nil
}

// Lose drops this share of the packets that arrive.
func (s *Space) Lose(ctx context.Context, share float64) error {
	return s.rule(ctx, fmt.Sprintf("-I INPUT -m statistic --mode random --probability %.4f -j DROP", share))
}

// LosePacketsOver drops what leaves in packets that are longer, in bytes, without
// a word, as a tunnel does whose ends believe in a longer one.
func (s *Space) LosePacketsOver(ctx context.Context, length int) error {
	return s.rule(ctx, fmt.Sprintf("-I OUTPUT -m length --length %d:65535 -j DROP", length+1))
}

// Plug and Unplug take the space's cable out and put it back.
func (s *Space) Plug(ctx context.Context) error {
	return batch(ctx, "link set "+s.port+" up\n")
}

// Unplug is the opposite of Plug.
func (s *Space) Unplug(ctx context.Context) error {
	return batch(ctx, "link set "+s.port+" down\n")
}

// Mend takes every fault of the space's network back.
func (s *Space) Mend(ctx context.Context) error {
	if err := s.Plug(ctx); err != nil {
		return err
	}
	return s.Command(ctx, "iptables", "--wait", "--flush")
}

// protocol restricts a rule to TCP where only TCP can be answered.
func protocol(how string) string {
	if how == Resetting {
		return " -p tcp"
	}
	return ""
}

// spread sends what goes to the service on to one of the members, at random and
// for each connection again, as kube-proxy does.
func (s *Space) spread(ctx context.Context, service netip.Addr, members []netip.Addr) error {
	var rules strings.Builder
	rules.WriteString("*nat\n")
	for i, addr := range members {
		chance := ""
		if left := len(members) - i; left > 1 {
			chance = fmt.Sprintf(" -m statistic --mode random --probability %.6f", 1/float64(left))
		}
		fmt.Fprintf(&rules, "-A OUTPUT -d %s -p tcp%s -j DNAT --to-destination %s\n", service, chance, addr)
	}
	rules.WriteString("COMMIT\n")
	return s.Do(func() error { return run(ctx, rules.String(), "iptables-restore", "--wait") })
}

// Ports sets from which to which ports the space's new connections come.
func (s *Space) Ports(from, to int) error {
	return s.Do(func() error {
		return os.WriteFile("/proc/sys/net/ipv4/ip_local_port_range", fmt.Appendf(nil, "%d %d", from, to), 0)
	})
}
