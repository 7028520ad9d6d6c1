package httpadapter

import (
	"cmp"
	"fmt"
	"net/http"
	"net/textproto"
	"slices"
	"strconv"
	"strings"
	"sync"

	"golang.org/x/net/http/httpguts"

	"github.com/windlass-dev/windlass/pkg/podagent/adapter"
)

// hopByHop are the headers that belong to a connection and not to its content (RFC 9110,
// 7.6.1, and those that were never standardised).
var hopByHop = []string{
	"Connection", "Keep-Alive", "Proxy-Authenticate", "Proxy-Authorization",
	"Proxy-Connection", "Te", "Trailer", "Transfer-Encoding", "Upgrade",
}

// ownHeaders are the headers of a request that are written from other fields of the call.
// The gateway met the client's expectation when it read the body.
var ownHeaders = []string{"Content-Length", "Expect", "Host"}

// keepEndToEnd removes the headers about its connection from h. Of an answer with "close" in
// its Connection header net/http has removed that header, so that what else it named is kept.
func keepEndToEnd(h http.Header) {
	for _, field := range h["Connection"] {
		for name := range strings.SplitSeq(field, ",") {
			delete(h, textproto.CanonicalMIMEHeaderKey(textproto.TrimString(name)))
		}
	}
	for _, name := range hopByHop {
		delete(h, name)
	}
}

// message is the memory for the head of a request, and for a small body.
type message struct {
	bytes []byte
	names []string
}

// maxKept bounds the memory that a message keeps for the next request, in bytes.
const maxKept = 64 << 10

var messages = sync.Pool{New: func() any { return new(message) }}

func (m *message) recycle() {
	if cap(m.bytes) <= maxKept {
		messages.Put(m)
	}
}

// appendHead appends the head of call's request to the function at addr. It returns an error if
// HTTP/1.1 has no such request: nothing that would end a line early may reach the function.
// length is that of the body; -1 if it is unknown.
func (m *message) appendHead(b []byte, call *adapter.Call, addr string, length int64) ([]byte, error) {
	host := cmp.Or(call.Host, addr)
	if !httpguts.ValidHeaderFieldName(call.Method) || !isTarget(call.RequestURI) || !httpguts.ValidHostHeader(host) {
		return b, fmt.Errorf("the request %q %q for the host %q is not valid", call.Method, call.RequestURI, host)
	}
	b = append(b, call.Method...)
	b = append(b, ' ')
	b = append(b, call.RequestURI...)
	b = append(b, " HTTP/1.1\r\n"...)
	b = appendField(b, "Host", host)
	switch {
	case length < 0:
		b = appendField(b, "Transfer-Encoding", "chunked")
	case length > 0, call.Method == http.MethodPost, call.Method == http.MethodPut, call.Method == http.MethodPatch:
		b = append(b, "Content-Length: "...)
		b = strconv.AppendInt(b, length, 10)
		b = append(b, "\r\n"...)
	}
	b, err := m.appendHeaders(b, call.Header)
	return append(b, "\r\n"...), err
}

// appendHeaders appends the end-to-end headers of h in the order of their names, so that the
// same call is the same request each time.
func (m *message) appendHeaders(b []byte, h http.Header) ([]byte, error) {
	m.names = m.names[:0]
	for name := range h {
		m.names = append(m.names, name)
	}
	slices.Sort(m.names)
	for _, name := range m.names {
		if !httpguts.ValidHeaderFieldName(name) {
			return b, fmt.Errorf("the header %q is not valid", name)
		}
		if canonical := http.CanonicalHeaderKey(name); slices.Contains(ownHeaders, canonical) || slices.Contains(hopByHop, canonical) || namesHeader(h["Connection"], name) {
			continue
		}
		for _, value := range h[name] {
			if !httpguts.ValidHeaderFieldValue(value) {
				return b, fmt.Errorf("the value of the header %q is not valid", name)
			}
			b = appendField(b, name, value)
		}
	}
	clear(m.names)
	return b, nil
}

// namesHeader reports whether a Connection header names another header as its own.
func namesHeader(connection []string, name string) bool {
	return len(connection) > 0 && httpguts.HeaderValuesContainsToken(connection, name)
}

func appendField(b []byte, name, value string) []byte {
	b = append(b, name...)
	b = append(b, ": "...)
	b = append(b, value...)
	return append(b, "\r\n"...)
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
