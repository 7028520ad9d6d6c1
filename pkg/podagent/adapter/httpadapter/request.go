package httpadapter

import (
	"context"
	"net/http"
	"net/textproto"
	"net/url"
	"strings"

	"github.com/windlass-dev/windlass/pkg/podagent/adapter"
)

// hopByHop are the headers that belong to a connection and not to its content (RFC 9110,
// 7.6.1, and those that were never standardised).
var hopByHop = []string{
	"Connection", "Keep-Alive", "Proxy-Authenticate", "Proxy-Authorization",
	"Proxy-Connection", "Te", "Trailer", "Transfer-Encoding", "Upgrade",
}

// endToEnd is a copy of h without the headers about its connection. Of an
// answer with "close" in its Connection header net/http has removed that
// header, so that what else it named is kept.
func endToEnd(h http.Header) http.Header {
	out := h.Clone()
	if out == nil {
		out = http.Header{}
	}
	for _, field := range h["Connection"] {
		for name := range strings.SplitSeq(field, ",") {
			delete(out, textproto.CanonicalMIMEHeaderKey(textproto.TrimString(name)))
		}
	}
	for _, name := range hopByHop {
		delete(out, name)
	}
	return out
}

// request is the request that call becomes.
func (a *Adapter) request(ctx context.Context, call *adapter.Call, up *upload) *http.Request {
	header := endToEnd(call.Header)
	// The gateway met the client's expectation when it read the body.
	delete(header, "Expect")
	if _, there := header["User-Agent"]; !there {
		// Otherwise net/http sends its own.
		header["User-Agent"] = nil
	}
	req := &http.Request{
		Method:        call.Method,
		URL:           a.target(call.RequestURI),
		Host:          call.Host,
		Header:        header,
		ContentLength: up.length,
		Body:          up.body(),
		Proto:         "HTTP/1.1",
		ProtoMajor:    1,
		ProtoMinor:    1,
	}
	return req.WithContext(ctx)
}

// target is a URL whose request line shows uri as it is.
func (a *Adapter) target(uri string) *url.URL {
	u := &url.URL{Scheme: "http", Host: a.addr}
	// net/http would turn an opaque "//x" into an absolute URL.
	if strings.HasPrefix(uri, "//") {
		u.Path, u.RawQuery, u.ForceQuery = uri, "", false
		if path, query, ok := strings.Cut(uri, "?"); ok {
			u.Path, u.RawQuery, u.ForceQuery = path, query, query == ""
		}
		if decoded, err := url.PathUnescape(u.Path); err == nil {
			u.Path, u.RawPath = decoded, u.Path
		}
		return u
	}
	u.Opaque = uri
	return u
}

// head is the head of resp for the gateway. The length is a field of its own.
func head(resp *http.Response) adapter.Head {
	h := endToEnd(resp.Header)
	delete(h, "Content-Length")
	return adapter.Head{Status: resp.StatusCode, Header: h, ContentLength: resp.ContentLength}
}
