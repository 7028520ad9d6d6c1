package httpadapter

import (
	"bytes"
	"cmp"
	"fmt"
	"maps"
	"net/http"
	"net/textproto"
	"slices"
	"strconv"
	"strings"
	"sync"
	"unicode/utf8"

	"golang.org/x/net/http/httpguts"

	"github.com/windlass-dev/windlass/pkg/invocation"
	"github.com/windlass-dev/windlass/pkg/podagent/adapter"
)

// hopByHop are the headers that belong to a connection and not to its content (RFC 9110,
// 7.6.1, and those that were never standardised).
var hopByHop = []string{
	"Connection", "Keep-Alive", "Proxy-Authenticate", "Proxy-Authorization",
	"Proxy-Connection", "Te", "Trailer", "Transfer-Encoding", "Upgrade",
}

// ownHeaders are the headers of a request that are written from other fields of the call.
var ownHeaders = []string{"Content-Length", "Expect", "Host"}

// request is what a call becomes for a function that speaks HTTP/1.1.
type request struct {
	call *adapter.Call
	// length of the body in bytes; -1 if it is unknown.
	length int64
	// expects is whether the function is asked to say when it wants the body.
	expects bool
	// upgrade lists the protocols that the function may switch to; empty if it may not.
	upgrade string
}

func newRequest(call *adapter.Call) request {
	r := request{call: call, length: call.ContentLength}
	whole, inMemory := call.Body.(*bytes.Reader)
	if inMemory && r.length < 0 && len(call.Trailer) == 0 {
		r.length = int64(whole.Len())
	}
	r.expects = call.ExpectContinue && r.length != 0 && !inMemory
	if r.length == 0 && !hidesRequests(call.Upgrade) {
		r.upgrade = call.Upgrade
	}
	return r
}

// hidesRequests reports whether an Upgrade header asks for HTTP or TLS. In those the client could
// send requests with headers that only gateways may set.
func hidesRequests(upgrade string) bool {
	for name := range strings.SplitSeq(strings.ToLower(upgrade), ",") {
		name, _, _ = strings.Cut(textproto.TrimString(name), "/")
		if strings.HasPrefix(name, "h2") || strings.HasPrefix(name, "http") || name == "tls" {
			return true
		}
	}
	return false
}

// message is the memory for the head of a request, and for a small body.
type message struct{ bytes []byte }

// maxKept bounds the memory that a message keeps for the next request, in bytes.
const maxKept = 64 << 10

var messages = sync.Pool{New: func() any { return new(message) }}

func (m *message) recycle() {
	if cap(m.bytes) <= maxKept {
		messages.Put(m)
	}
}

// appendHead appends the head of a request to the function at addr. It returns an error if
// HTTP/1.1 has no such request: nothing that would end a line early may reach the function.
func appendHead(b []byte, r request, addr string) ([]byte, error) {
	call, host := r.call, cmp.Or(r.call.Host, addr)
	if !httpguts.ValidHeaderFieldName(call.Method) || !isTarget(call.RequestURI) || !httpguts.ValidHostHeader(host) {
		return b, fmt.Errorf("the request %q %q for the host %q is not valid", call.Method, call.RequestURI, host)
	}
	b = append(b, call.Method...)
	b = append(b, ' ')
	b = appendTarget(b, call.RequestURI)
	b = append(b, " HTTP/1.1\r\n"...)
	b = appendField(b, "Host", host)
	if r.upgrade != "" {
		if !httpguts.ValidHeaderFieldValue(r.upgrade) {
			return b, fmt.Errorf("the upgrade to %q is not valid", r.upgrade)
		}
		b = appendField(b, "Connection", "Upgrade")
		b = appendField(b, "Upgrade", r.upgrade)
	}
	b, err := appendFraming(b, r)
	if err != nil {
		return b, err
	}
	b, err = appendHeaders(b, call.Header)
	return append(b, "\r\n"...), err
}

// appendFraming appends the headers about the body.
func appendFraming(b []byte, r request) ([]byte, error) {
	switch {
	case r.length < 0:
		b = appendField(b, "Transfer-Encoding", "chunked")
		names := slices.Sorted(maps.Keys(r.call.Trailer))
		for _, name := range names {
			if !httpguts.ValidHeaderFieldName(name) || !httpguts.ValidTrailerHeader(name) {
				return b, fmt.Errorf("the trailer %q is not valid", name)
			}
		}
		if len(names) > 0 {
			b = appendField(b, "Trailer", strings.Join(names, ", "))
		}
	case r.length > 0, r.call.Method == http.MethodPost, r.call.Method == http.MethodPut, r.call.Method == http.MethodPatch:
		b = append(b, "Content-Length: "...)
		b = strconv.AppendInt(b, r.length, 10)
		b = append(b, "\r\n"...)
	}
	if r.expects {
		b = appendField(b, "Expect", "100-continue")
	}
	return b, nil
}

// appendHeaders appends the end-to-end headers.
func appendHeaders(b []byte, headers invocation.Fields) ([]byte, error) {
	connection := tokensOf(connectionOf(headers))
	for _, h := range headers {
		if isAnyOf(h.Name, ownHeaders) || isAnyOf(h.Name, hopByHop) || connection != nil && connection[strings.ToLower(h.Name)] {
			continue
		}
		var err error
		if b, err = appendValid(b, h.Name, h.Value); err != nil {
			return b, err
		}
	}
	return b, nil
}

// connectionOf are the values of the Connection headers, which name headers of the connection.
func connectionOf(headers invocation.Fields) (values []string) {
	for _, h := range headers {
		if isName(h.Name, "Connection") {
			values = append(values, h.Value)
		}
	}
	return values
}

// appendValid appends a header or a trailer, or an error if it is not valid.
func appendValid(b []byte, name, value string) ([]byte, error) {
	if !httpguts.ValidHeaderFieldName(name) {
		return b, fmt.Errorf("the header %q is not valid", name)
	}
	if !httpguts.ValidHeaderFieldValue(value) {
		return b, fmt.Errorf("the value of the header %q is not valid", name)
	}
	return appendField(b, name, value), nil
}

func appendField(b []byte, name, value string) []byte {
	b = append(b, name...)
	b = append(b, ": "...)
	b = append(b, value...)
	return append(b, "\r\n"...)
}

// appendTarget appends what isTarget allows. Clients send queries with bytes that a URL has only
// percent-encoded (RFC 3986, 2.1), and some servers refuse those, such as that of Node.js.
func appendTarget(b []byte, s string) []byte {
	const hex = "0123456789ABCDEF"
	for i := range len(s) {
		if c := s[i]; c < utf8.RuneSelf {
			b = append(b, c)
		} else {
			b = append(b, '%', hex[c>>4], hex[c&15])
		}
	}
	return b
}

// isTarget reports whether a request line can have s between its spaces.
func isTarget(s string) bool {
	for i := range len(s) {
		if s[i] <= ' ' || s[i] == 0x7f {
			return false
		}
	}
	return s != ""
}
