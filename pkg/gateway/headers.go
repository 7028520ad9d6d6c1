package gateway

import (
	"net"
	"net/http"
	"strconv"
	"strings"

	wirev1 "github.com/windlass-dev/windlass/api/wire/v1"
	"github.com/windlass-dev/windlass/pkg/invoke"
)

// hopByHop are the headers that concern one connection only (RFC 9110 7.6.1),
// and Expect, which the gateway answers itself.
var hopByHop = map[string]bool{
	"Connection":          true,
	"Proxy-Connection":    true,
	"Keep-Alive":          true,
	"Proxy-Authenticate":  true,
	"Proxy-Authorization": true,
	"Te":                  true,
	"Trailer":             true,
	"Transfer-Encoding":   true,
	"Upgrade":             true,
	"Expect":              true,
}

const ownPrefix = "X-Windlass-"

// endToEnd calls keep for every header that the other side is to see: not those
// of the connection, and none that only Windlass may set.
func endToEnd(h http.Header, keep func(name, value string)) {
	var named map[string]bool
	for _, list := range h["Connection"] {
		for name := range strings.SplitSeq(list, ",") {
			if named == nil {
				named = make(map[string]bool)
			}
			named[http.CanonicalHeaderKey(strings.TrimSpace(name))] = true
		}
	}
	for name, values := range h {
		if hopByHop[name] || named[name] || strings.HasPrefix(name, ownPrefix) {
			continue
		}
		for _, value := range values {
			keep(name, value)
		}
	}
}

// requestHeaders are what the function sees of the client's headers.
func requestHeaders(r *http.Request, c *call) []*wirev1.Header {
	headers := make([]*wirev1.Header, 0, len(r.Header)+6)
	add := func(name, value string) {
		headers = append(headers, &wirev1.Header{Name: name, Value: value})
	}
	endToEnd(r.Header, func(name, value string) {
		if name != "X-Forwarded-For" && name != c.origin.caller.Spent {
			add(name, value)
		}
	})
	client, _, err := net.SplitHostPort(r.RemoteAddr)
	if err != nil {
		client = r.RemoteAddr
	}
	add("X-Forwarded-For", strings.Join(append(r.Header["X-Forwarded-For"], client), ", "))
	if r.Header.Get("X-Forwarded-Proto") == "" {
		proto := "http"
		if r.TLS != nil {
			proto = "https"
		}
		add("X-Forwarded-Proto", proto)
	}
	if r.Header.Get("X-Forwarded-Host") == "" {
		add("X-Forwarded-Host", r.Host)
	}
	add(invoke.HeaderInvocationID, c.id.String())
	add(invoke.HeaderDepth, strconv.Itoa(c.origin.depth))
	if c.origin.caller.Name != "" {
		add(invoke.HeaderCaller, c.origin.caller.Name)
	}
	return headers
}

// answerHeaders are what the client sees of the function's headers.
func answerHeaders(into http.Header, headers []*wirev1.Header) {
	from := make(http.Header, len(headers))
	for _, h := range headers {
		from.Add(h.GetName(), h.GetValue())
	}
	endToEnd(from, into.Add)
}
