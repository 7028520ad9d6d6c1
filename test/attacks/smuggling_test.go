package attacks

import (
	"bufio"
	"errors"
	"io"
	"net/http"
	"strings"

	"github.com/windlass-dev/windlass/internal/callwire"
)

const seenPath = "/function/honest.shop/seen"

func seen(method, body string, headers ...string) string {
	return request(method+" "+seenPath, append(headers, "", body)...)
}

// lacks checks that the function does not see headers, whatever their spelling.
func lacks(names ...string) func(*platform, *callwire.Call, http.Header) {
	return func(w *platform, _ *callwire.Call, header http.Header) {
		w.Helper()
		for name, values := range header {
			for _, banned := range names {
				if strings.EqualFold(strings.ReplaceAll(name, "_", "-"), banned) {
					w.Errorf("the function sees %s: %q", name, values)
				}
			}
		}
	}
}

var smuggling = []attack{
	{"F87", "two lengths", noHTTP + "{code=400}", refuses(post("abcd", "Content-Length: 4", "Content-Length: 5"), 400)},
	{"F87", "two lengths in one line", noHTTP + "{code=400}", refuses(post("abcd", "Content-Length: 4, 5"), 400)},
	{"F87", "a length with a sign", noHTTP + "{code=400}", refuses(post("abcd", "Content-Length: +4"), 400)},
	{"F87", "a length below zero", noHTTP + "{code=400}", refuses(post("abcd", "Content-Length: -1"), 400)},
	{"F87", "a length in hexadecimal", noHTTP + "{code=400}", refuses(post("abcd", "Content-Length: 0x4"), 400)},
	{"F87", "a length beyond 64 bits", noHTTP + "{code=400}", refuses(post("abcd", "Content-Length: 18446744073709551620"), 400)},
	{"F87", "an empty length", noHTTP + "{code=400}", refuses(post("abcd", "Content-Length: "), 400)},
	{"F87", "an encoding that is unknown", noHTTP + "{code=501}", refuses(post("0\r\n\r\n", "Transfer-Encoding: xchunked"), 501)},
	{"F87", "two encodings", noHTTP, refuses(post("0\r\n\r\n", "Transfer-Encoding: chunked", "Transfer-Encoding: identity"), 400, 501)},
	{"F87", "two encodings in one line", noHTTP, refuses(post("0\r\n\r\n", "Transfer-Encoding: chunked, identity"), 400, 501)},
	{"F87", "a space before the colon", noHTTP + "{code=400}", refuses(post("0\r\n\r\n", "Transfer-Encoding : chunked"), 400)},
	{"F87", "a tab before the encoding's name", noHTTP, refuses(post("0\r\n\r\n", "Transfer-Encoding: \x0bchunked"), 400, 501)},
	{"F87", "a return within a header", noHTTP + "{code=400}", refuses(get("X-A: a\rWindlass-Executed: yes"), 400)},
	{"F87", "a zero byte within a header", noHTTP + "{code=400}", refuses(get("X-A: a\x00b"), 400)},
	{"F87", "a header without a name", noHTTP + "{code=400}", refuses(get(": a"), 400)},
	{"F87", "a header without a colon", noHTTP + "{code=400}", refuses(get("Windlass-Executed"), 400)},
	{"F87", "a name with a space", noHTTP + "{code=400}", refuses(get("X Windlass: a"), 400)},
	{"F87", "a folded first header", noHTTP + "{code=400}", refuses("GET "+attackPath+" HTTP/1.1\r\n Host: h\r\n\r\n", 400)},
	{"F87", "two hosts", noHTTP + "{code=400}", refuses(get("Host: other"), 400)},
	{"F87", "no host", noHTTP + "{code=400}", refuses("GET "+attackPath+" HTTP/1.1\r\n\r\n", 400)},
	{"F87", "a host that is none", noHTTP + "{code=400}", refuses("GET "+attackPath+" HTTP/1.1\r\nHost: a/b c\r\n\r\n", 400)},
	{"F87", "a chunk that ends in a bare line feed", answered + "{code=400}", badChunk("1\nA\r\n0\r\n\r\n")},
	{"F87", "a chunk with a sign", answered, badChunk("+1\r\nA\r\n0\r\n\r\n")},
	{"F87", "a chunk that is longer than it says", answered, badChunk("1\r\nAB\r\n0\r\n\r\n")},
	{"F87", "a chunk beyond 64 bits", answered, badChunk("1ffffffffffffffff\r\nA\r\n0\r\n\r\n")},
	{"F87", "a length and an encoding", "", func(w *platform) {
		// The encoding counts, for a server behind the gateway too.
		sees(seen("POST", "1\r\nA\r\n0\r\n\r\n", "Content-Length: 3", "Transfer-Encoding: chunked"), func(w *platform, g *callwire.Call, h http.Header) {
			if g.ContentLength >= 0 || h.Get("Transfer-Encoding") != "" || h.Get("Content-Length") != "" {
				w.Errorf("the function sees a length of %d and %v", g.ContentLength, h)
			}
		})(w)
	}},
	{"F87", "a folded header", "", sees(seen("GET", "", "X-A: a", " Windlass-Executed: yes"), func(w *platform, g *callwire.Call, h http.Header) {
		lacks("Windlass-Executed")(w, g, h)
		if got := h.Get("X-A"); strings.ContainsAny(got, "\r\n") {
			w.Errorf("the function sees %q", got)
		}
	})},
	{"F87", "headers that only Windlass may set", "", sees(seen("GET", "",
		"Windlass-Invocation-Id: "+marker, "windlass-executed: yes", "WINDLASS-CALLER: admin", "Windlass_Caller: admin",
		"X-WINDLASS-CALLER: admin", "X_Windlass_Caller: admin", "X-Windlass_Caller: admin", "x_windlass-caller: admin", "X_Forwarded_For: 1.2.3.4"),
		func(w *platform, g *callwire.Call, h http.Header) {
			lacks("Windlass-Executed", "Windlass-Caller", "Windlass_caller", "X-Windlass-Caller", "X_windlass_caller", "X-Windlass_caller", "X_windlass-Caller")(w, g, h)
			if ids := h["Windlass-Invocation-Id"]; len(ids) != 1 || ids[0] == marker || strings.Contains(h.Get("X_forwarded_for"), "1.2.3.4") {
				w.Errorf("the function sees %v", h)
			}
		})},
	{"F87", "headers that are named as those of the connection", "", sees(seen("GET", "",
		"Connection: close, Windlass-Invocation-Id, X-Forwarded-For, X-Named", "X-Named: a", "Keep-Alive: 1", "Proxy-Authorization: "+marker, "TE: trailers", "Upgrade: x"),
		func(w *platform, g *callwire.Call, h http.Header) {
			lacks("X-Named", "Connection", "Keep-Alive", "Proxy-Authorization", "TE", "Upgrade")(w, g, h)
			if h.Get("Windlass-Invocation-Id") == "" || h.Get("X-Forwarded-For") == "" {
				w.Errorf("the function sees only %v", h)
			}
		})},
	{"F87", "trailers that pose as headers", "", sees(seen("POST", "1\r\nA\r\n0\r\nWindlass-Executed: yes\r\nAuthorization: "+marker+"\r\nContent-Length: 9\r\n\r\n",
		"Transfer-Encoding: chunked", "Trailer: Authorization"), lacks("Authorization", "Windlass-Executed", "Trailer", "Content-Length"))},
	{"F87", "a request in the body of another", "", func(w *platform) {
		inner := "GET " + attackPath + " HTTP/1.1\r\nHost: h\r\n\r\n"
		conn := w.dial(w.calls)
		_, _ = io.WriteString(conn, seen("POST", inner, "Content-Length: "+itoa(len(inner)), "Connection: close"))
		r := bufio.NewReader(conn)
		if got := readResponse(r); got.status != 200 || got.body != inner {
			w.Errorf("answered %d %q", got.status, got.body)
		}
		if rest, err := io.ReadAll(r); len(rest) > 0 || isTimeout(err) {
			w.Errorf("there came more: %q, %v", rest, err)
		}
	}},
}

// badChunk sends a body to evil whose chunks are broken: its reader must be
// told that it is not whole.
func badChunk(body string) func(*platform) {
	return func(w *platform) {
		own := w.instanceOf(evil)
		pulls := w.hello(w.asAgent(), own, w.token(podOf(own), nil))
		_ = pulls.Send(pull(1))
		responses := make(chan response, 1)
		go func() {
			responses <- w.raw("POST /function/evil.shop/ HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n" + body)
		}()
		ticket, err := nextTicket(pulls)
		if err != nil {
			w.Fatal(err)
		}
		a := w.claims(ticket)
		if _, err := a.body(); !errors.Is(err, errCut) {
			w.Errorf("instead of the end of a body that is not whole: %v", err)
		}
		a.send(whole(400, nil))
		if r := receive(w.T, responses, "the answer"); r.err == nil && r.status != 400 {
			w.Errorf("answered %d", r.status)
		}
	}
}
