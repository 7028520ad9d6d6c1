package webguard

import (
	"fmt"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
)

// Guard knows whose pages may ask. The zero Guard lets only the server's own ask.
type Guard struct {
	// Origins are other origins whose pages may send requests, such as http://localhost:3000.
	// The server also accepts requests to their hosts, as through a tunnel.
	Origins []string
}

// Validate names the first origin that is none, or that browsers write in another way.
func (g Guard) Validate() error {
	for _, origin := range g.Origins {
		u, err := url.Parse(origin)
		if err != nil || u.Hostname() == "" || (u.Scheme != "http" && u.Scheme != "https") || !strings.EqualFold(u.Scheme+"://"+u.Host, origin) {
			return fmt.Errorf("%q is not an origin: write scheme and host, for example http://localhost:3000", origin)
		}
		if sent := sentBy(u); sent != origin {
			return fmt.Errorf("%q is what no browser sends; write %s", origin, sent)
		}
	}
	return nil
}

// sentBy is the origin of the pages at a URL as browsers send it: in small letters, without the
// port that the scheme has by default.
func sentBy(u *url.URL) string {
	host, port := strings.ToLower(u.Host), u.Port()
	if port == "" || u.Scheme == "http" && port == "80" || u.Scheme == "https" && port == "443" {
		host = strings.TrimSuffix(host, ":"+port)
	}
	return u.Scheme + "://" + host
}

// Refuses says why to refuse a request; empty if it is allowed.
//
// A foreign name that leads to this machine belongs to somebody whose page wants to read the
// answers. All other requests of a browser name the page's origin.
func (g Guard) Refuses(r *http.Request) string {
	if !NamesThisMachine(r.Host) && !g.allowsHost(r.Host) {
		return fmt.Sprintf("the request is for the host %q, and only localhost and loopback addresses are answered", r.Host)
	}
	origin := r.Header.Get("Origin")
	switch {
	case slices.Contains(g.Origins, origin):
		return ""
	case origin != "" && !isOf(origin, r.Host):
		return fmt.Sprintf("the request is from a page of %q", origin)
	}
	if site := r.Header.Get("Sec-Fetch-Site"); site != "" && site != "same-origin" && site != "none" {
		return fmt.Sprintf("the request is from a page of another site (Sec-Fetch-Site: %s)", site)
	}
	return ""
}

// isOf tells whether an origin is that of a host.
func isOf(origin, host string) bool {
	u, err := url.Parse(origin)
	return err == nil && u.Host != "" && strings.EqualFold(u.Host, host)
}

func (g Guard) allowsHost(host string) bool {
	return slices.ContainsFunc(g.Origins, func(origin string) bool { return isOf(origin, host) })
}

// CheckListen refuses an address, as host:port, at which others than this machine could ask.
func CheckListen(addr string) error {
	host, _, err := net.SplitHostPort(addr)
	switch {
	case err != nil:
		return fmt.Errorf("%q is no address: write host:port, for example 127.0.0.1:8080", addr)
	case !NamesThisMachine(host):
		return fmt.Errorf("%q is not a loopback address: local mode encrypts nothing, so it listens on this machine only; write for example 127.0.0.1:8080", addr)
	}
	return nil
}

// NamesThisMachine says whether a Host header names the machine itself, as only its own
// users can name it.
func NamesThisMachine(host string) bool {
	name, port, err := net.SplitHostPort(host)
	if err != nil {
		name = strings.TrimSuffix(strings.TrimPrefix(host, "["), "]")
	} else if _, err := strconv.ParseUint(port, 10, 16); err != nil {
		return false
	}
	return strings.EqualFold(name, "localhost") || net.ParseIP(name).IsLoopback()
}
