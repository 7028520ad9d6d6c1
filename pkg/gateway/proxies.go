package gateway

import (
	"fmt"
	"net/netip"
	"strings"
)

// Proxies are the networks of the proxies in front of gateways. What their requests
// say of the client behind them is believed; empty means that nobody is.
type Proxies []netip.Prefix

// Loopback is the machine itself.
func Loopback() Proxies {
	return Proxies{netip.MustParsePrefix("127.0.0.0/8"), netip.MustParsePrefix("::1/128")}
}

// ParseProxies reads CIDRs. It fails for what is none.
func ParseProxies(cidrs []string) (Proxies, error) {
	var all Proxies
	for _, cidr := range cidrs {
		network, err := netip.ParsePrefix(cidr)
		if err != nil {
			return nil, fmt.Errorf("--trusted-proxies: %q is no network; write it as a CIDR, such as 10.0.0.0/8 or 192.0.2.7/32", cidr)
		}
		all = append(all, network)
	}
	return all, nil
}

// trust tells whether the peer of a connection, host:port, is one of them.
func (p Proxies) trust(peer string) bool {
	at, err := netip.ParseAddrPort(peer)
	if err != nil {
		return false
	}
	addr := at.Addr().Unmap().WithZone("")
	for _, network := range p {
		if network.Contains(addr) {
			return true
		}
	}
	return false
}

// fromProxies are the headers, besides those that begin with forwarded or original, by
// which proxies tell who their client is and what it asked for.
var fromProxies = map[string]bool{
	"Forwarded":                true,
	"X-Real-Ip":                true,
	"X-Rewrite-Url":            true,
	"X-Client-Ip":              true,
	"X-Cluster-Client-Ip":      true,
	"X-Envoy-External-Address": true,
	"X-Scheme":                 true,
	"X-Url-Scheme":             true,
	"Front-End-Https":          true,
	"Client-Ip":                true,
	"True-Client-Ip":           true,
	"Cf-Connecting-Ip":         true,
	"Cf-Connecting-Ipv6":       true,
	"Fastly-Client-Ip":         true,
}

// What the names of most headers of proxies begin with.
const (
	forwarded = "X-Forwarded-"
	original  = "X-Original-"
)

// ofProxies tells whether only a proxy should set a header, by its canonical name.
func ofProxies(name string) bool {
	return strings.HasPrefix(name, forwarded) || strings.HasPrefix(name, original) || fromProxies[name]
}
