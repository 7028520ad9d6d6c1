package gateway

import (
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/net/http/httpguts"

	"github.com/windlass-dev/windlass/internal/callwire"
	"github.com/windlass-dev/windlass/pkg/gateway/auth"
	"github.com/windlass-dev/windlass/pkg/invocation"
)

// hopByHop reports whether a header, by its canonical name, concerns one connection only (RFC 9110
// 7.6.1), or is Expect, which the gateway answers itself.
func hopByHop(name string) bool {
	switch name {
	case "Connection", "Proxy-Connection", "Keep-Alive", "Proxy-Authenticate", "Proxy-Authorization", "Te", "Trailer", "Transfer-Encoding",
		"Upgrade", "Expect":
		return true
	}
	return false
}

// reserved reports whether only Windlass may set a header, given by its name with hyphens.
// Windlass never sets names with X- in front, but readers might take them for its own.
func reserved(name string) bool {
	if hasPrefixFold(name, "X-") {
		name = name[len("X-"):]
	}
	return hasPrefixFold(name, "Windlass-")
}

// imitatesReserved reports whether a header is reserved for Windlass, or could be mistaken for
// one of Windlass's or of a proxy's: where headers become variables, as in CGI and WSGI, a
// hyphen equals an underscore, and in some servers any other character.
func imitatesReserved(name string) bool {
	if reserved(name) {
		return true
	}
	if isPlain(name) {
		return false
	}
	hyphens := strings.Map(func(r rune) rune {
		if isOtherChar(r) {
			return '-'
		}
		return r
	}, name)
	return reserved(hyphens) || isProxyHeader(http.CanonicalHeaderKey(hyphens))
}

// isPlain reports whether a header's name has only letters, digits and hyphens.
func isPlain(name string) bool {
	for i := range len(name) {
		if isOtherChar(rune(name[i])) {
			return false
		}
	}
	return true
}

// isOtherChar reports whether a character of a header's name is neither letter, digit nor
// hyphen.
func isOtherChar(r rune) bool {
	return r != '-' && (r < '0' || r > '9') && (r < 'a' || r > 'z') && (r < 'A' || r > 'Z')
}

func hasPrefixFold(s, prefix string) bool {
	return len(s) >= len(prefix) && strings.EqualFold(s[:len(prefix)], prefix)
}

// ofConnection are the headers that a Connection header names, by their canonical names.
type ofConnection map[string]bool

// with adds those of one value of the header.
func (named ofConnection) with(list string) ofConnection {
	if named == nil {
		named = make(ofConnection)
	}
	for name := range strings.SplitSeq(list, ",") {
		named[http.CanonicalHeaderKey(strings.TrimSpace(name))] = true
	}
	return named
}

// passes reports whether the other side should see a header, by its canonical name: none of the
// connection, and none that only Windlass may set.
func (named ofConnection) passes(name string) bool {
	return !hopByHop(name) && !named[name] && !imitatesReserved(name)
}

// headersOfConnection are those that the Connection headers of h name.
func headersOfConnection(h http.Header) (named ofConnection) {
	for _, list := range h["Connection"] {
		named = named.with(list)
	}
	return named
}

// endToEnd calls keep for every header that the other side should see.
func endToEnd(h http.Header, keep func(name, value string)) {
	named := headersOfConnection(h)
	for name, values := range h {
		if !named.passes(name) {
			continue
		}
		for _, value := range values {
			keep(name, value)
		}
	}
}

// announcedTrailers are the names of the trailers that the function may be told of. One that no
// request may have would make the request one that no instance can write. proxied says that the request
// came by a trusted proxy.
func announcedTrailers(r *http.Request, proxied bool) []string {
	if len(r.Trailer) == 0 {
		return nil
	}
	named := headersOfConnection(r.Header)
	var names []string
	for name := range r.Trailer {
		if httpguts.ValidHeaderFieldName(name) && httpguts.ValidTrailerHeader(name) && named.passes(name) && (proxied || !isProxyHeader(name)) {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// callChain names the calling function, and how many functions have called each other before.
type callChain struct {
	caller auth.Caller
	// hopCount is how many functions called each other to make this request.
	hopCount int
	// proxied is whether the request came by a trusted proxy.
	proxied bool
}

// hopCount is how many functions have called each other to make this request.
func hopCount(h http.Header) int {
	depth := h.Get(invocation.HeaderDepth)
	if depth == "" {
		return 0 // without an error to make
	}
	n, err := strconv.Atoi(depth)
	if err != nil {
		return 0
	}
	return max(0, n)
}

// requestHeaders are the client's headers as the function sees them. Headers about a client
// behind the peer are kept if the peer is a trusted proxy.
func requestHeaders(r *http.Request, id invocation.ID, from callChain) []callwire.Field {
	headers := make([]callwire.Field, 0, len(r.Header)+6)
	add := func(name, value string) {
		headers = append(headers, callwire.Field{Name: name, Value: value})
	}
	endToEnd(r.Header, func(name, value string) {
		if name != "X-Forwarded-For" && (from.proxied || !isProxyHeader(name)) && name != "Content-Length" && name != "Host" && name != from.caller.Spent {
			add(name, value)
		}
	})
	// HTTP/2 does not compare what is said of a body that is not there.
	if r.Header["Content-Length"] != nil && r.ContentLength >= 0 {
		add("Content-Length", strconv.FormatInt(r.ContentLength, 10))
	}
	client, _, err := net.SplitHostPort(r.RemoteAddr)
	if err != nil {
		client = r.RemoteAddr
	}
	via := []string{client}
	if from.proxied {
		via = slices.Concat(r.Header["X-Forwarded-For"], []string{client})
	}
	add("X-Forwarded-For", strings.Join(via, ", "))
	if !from.proxied || !hasField(headers, "X-Forwarded-Proto") {
		proto := "http"
		if r.TLS != nil {
			proto = "https"
		}
		add("X-Forwarded-Proto", proto)
	}
	if !from.proxied || !hasField(headers, "X-Forwarded-Host") {
		add("X-Forwarded-Host", r.Host)
	}
	add(invocation.HeaderInvocationID, id.String())
	add(invocation.HeaderDepth, strconv.Itoa(from.hopCount))
	if from.caller.Name != "" {
		add(invocation.HeaderCaller, from.caller.Name)
	}
	return headers
}

// hasField reports whether any of the headers has a name and a value.
func hasField(headers []callwire.Field, name string) bool {
	return slices.ContainsFunc(headers, func(f callwire.Field) bool { return f.Name == name && f.Value != "" })
}

// answerHeader is the header of an answer while it is made. Its names are canonical.
type answerHeader struct {
	http.Header
	// values has those of names with one value, as most have.
	values []string
}

// ownHeaders is how many headers the gateway sets itself, at most.
const ownHeaders = 6

// answerHeaders sets what the client sees of the headers of a function, which has the path shared on the
// origin that functions share.
func answerHeaders(into http.Header, headers []callwire.Field, shared string) answerHeader {
	a := answerHeader{into, make([]string, 0, len(headers)+ownHeaders)}
	var named ofConnection
	for _, h := range headers {
		if strings.EqualFold(h.Name, "Connection") {
			named = named.with(h.Value)
		}
	}
	for _, h := range headers {
		name := http.CanonicalHeaderKey(h.Name)
		if !named.passes(name) {
			continue
		}
		if value, kept := filterHeader(name, h.Value, shared); kept {
			a.add(name, value)
		}
	}
	return a
}

func (a *answerHeader) add(name, value string) {
	if before := a.Header[name]; before != nil {
		a.Header[name] = append(before, value)
		return
	}
	a.set(name, value)
}

func (a *answerHeader) set(name, value string) {
	n := len(a.values)
	a.values = append(a.values, value)
	a.Header[name] = a.values[n : n+1 : n+1]
}

// Proxies are the networks of the proxies in front of gateways. The gateway trusts their
// headers about the client; empty means that it trusts no proxy.
type Proxies []netip.Prefix

// Loopback is the machine itself.
func Loopback() Proxies {
	return Proxies{netip.MustParsePrefix("127.0.0.0/8"), netip.MustParsePrefix("::1/128")}
}

// ParseProxies parses CIDRs. It returns an error that names an invalid one.
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

// trusts reports whether the peer of a connection, host:port, is one of them.
func (p Proxies) trusts(peer string) bool {
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

// isProxyHeader reports whether only a proxy should set a header, by its canonical name: to describe its
// client and the request, or to say whom it has authenticated.
func isProxyHeader(name string) bool {
	switch name {
	case "Forwarded", "Forwarded-For", "Forwarded-For-Ip", "Front-End-Https", "Client-Ip", "True-Client-Ip", "Cf-Connecting-Ip", "Cf-Connecting-Ipv6",
		"Fastly-Client-Ip", "Fly-Client-Ip", "Do-Connecting-Ip",
		"X-Real-Ip", "X-Rewrite-Url", "X-Client-Ip", "X-Cluster-Client-Ip", "X-Envoy-External-Address", "X-Scheme", "X-Url-Scheme", "X-Appengine-User-Ip":
		return true
	}
	prefixes := proxyPrefixes
	if strings.HasPrefix(name, "X-") {
		prefixes = proxyXPrefixes
	}
	return slices.ContainsFunc(prefixes, func(prefix string) bool { return strings.HasPrefix(name, prefix) })
}

// What the names of most headers of proxies begin with, with X- in front and without.
var (
	proxyPrefixes = []string{
		"Remote-",
		"Cf-Access-",
		"Tailscale-",
		"Client-Cert",
		"Ssl-Client-",
	}
	proxyXPrefixes = []string{
		"X-Forwarded",
		"X-Original-",
		"X-Azure-",
		"X-Remote-",
		"X-Auth-Request-",
		"X-Webauth-",
		"X-Authentik-",
		"X-Pomerium-",
		"X-Consumer-",
		"X-Goog-Authenticated-User-",
		"X-Goog-Iap-",
		"X-Amzn-Oidc-",
		"X-Amzn-Mtls-",
		"X-Ms-Client-Principal",
		"X-Ms-Token-",
		"X-Client-Cert",
		"X-Ssl-Client-",
	}
)
