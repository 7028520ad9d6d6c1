package attacks

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/windlass-dev/windlass/api/v1alpha1"
	agentwire "github.com/windlass-dev/windlass/api/wire/agent/v1alpha1"
	"github.com/windlass-dev/windlass/internal/callwire"
)

var big = strings.Repeat("A", 1<<20)

var sizes = []attack{
	{"F89", "a body over the limit", atTheEdge + "{reason=BodyTooLarge}", refuses(post(big, "Content-Length: "+itoa(len(big))), 413)},
	{"F89", "a body that says it has 8 EiB", atTheEdge + "{reason=BodyTooLarge}", refuses(post("A", "Content-Length: 9223372036854775807"), 413)},
	{"F89", "a body over the limit that does not say so", answered + "{code=502}", func(w *platform) {
		// It is found out while an instance is given it.
		r := w.raw(request("POST /function/honest.shop/", "Transfer-Encoding: chunked", "", fmt.Sprintf("%x\r\n%s\r\n0\r\n\r\n", len(big), big)))
		if r.status != 502 || r.header.Get("Windlass-Executed") != "maybe" {
			w.Errorf("answered %d, %v", r.status, r.header)
		}
	}},
	{"F89", "a header of 1 MiB", noHTTP + "{code=431}", refuses(get("X-A: "+big), 431)},
	{"F89", "a name of a header of 1 MiB", noHTTP, refuses(get(big+": a"), 431, 400)},
	{"F89", "100,000 headers", noHTTP + "{code=431}", refuses(get(strings.Repeat("X-A: a\r\n", 100_000)+"X-B: b"), 431)},
	{"F89", "an address of 1 MiB", noHTTP, refuses(request("GET "+attackPath+big, "", ""), 431, 414, 400)},
	{"F89", "a method of 1 MiB", noHTTP, refuses(request(big+" "+attackPath, "", ""), 431, 400)},
	{"F89", "trailers of 1 MiB", "", unfinished(post("1\r\nA\r\n0\r\nX-A: "+big+"\r\n\r\n", "Transfer-Encoding: chunked"))},
	{"F89", "an extension of a chunk of 1 MiB", "", unfinished(post("1;"+big+"\r\nA\r\n0\r\n\r\n", "Transfer-Encoding: chunked"))},
	{"F89", "a million chunks of one byte with extensions", "", unfinished(post(strings.Repeat("1;"+strings.Repeat("x", 100)+"\r\nA\r\n", 20_000)+"0\r\n\r\n", "Transfer-Encoding: chunked"))},
	{"F90", "a bomb", "", func(w *platform) {
		// What is compressed stays so: the function is given as many bytes as came.
		sees(seen("POST", "\x1f\x8b\x08\x00bomb", "Content-Encoding: gzip", "Content-Length: 8"), func(w *platform, g *callwire.Call, h http.Header) {
			if len(g.Body) != 8 || len(h["Content-Encoding"]) != 1 {
				w.Errorf("the function sees %d bytes and %v", len(g.Body), h)
			}
		})(w)
	}},
}

// unfinished sends a request to evil whose body cannot be read to its end; nobody
// must be told that it is whole.
func unfinished(text string) func(*platform) {
	_, body, _ := strings.Cut(text, "\r\n\r\n")
	return badChunk(body)
}

var protocols = []attack{
	{"F91", "CONNECT", atTheEdge, func(w *platform) {
		refuses("CONNECT 169.254.169.254:80 HTTP/1.1\r\nHost: 169.254.169.254:80\r\n\r\n", 405)(w)
		refuses(request("CONNECT "+attackPath, "", ""), 405)(w)
	}},
	{"F91", "TRACE", atTheEdge + "{reason=MethodNotAllowed}", refuses(request("TRACE "+attackPath, "Authorization: "+marker, "", ""), 405)},
	{"F91", "an unknown expectation", noHTTP + "{code=417}", refuses(post("A", "Expect: the-moon", "Content-Length: 1"), 417)},
	{"F91", "a version of HTTP that is none", noHTTP, func(w *platform) {
		for _, version := range []string{"HTTP/3.0", "HTTP/0.9", "HTTP/1", "HTTP/9.9", "http/1.1", "HTTP/1.1 x", ""} {
			refuses("GET "+attackPath+" "+version+"\r\nHost: h\r\n\r\n", 400, 505)(w)
		}
	}},
	{"F91", "an upgrade to a WebSocket", "", sees(seen("GET", "", "Connection: Upgrade", "Upgrade: websocket", "Sec-WebSocket-Key: a", "Sec-WebSocket-Version: 13"),
		lacks("Upgrade", "Connection"))},
	{"F91", "an upgrade to HTTP/2", "", sees(seen("GET", "", "Connection: Upgrade, HTTP2-Settings", "Upgrade: h2c", "HTTP2-Settings: AAMAAABkAAQCAAAAAAIAAAAA"),
		lacks("Upgrade", "Connection", "HTTP2-Settings"))},
	{"F91", "a TLS handshake on the port for calls", noHTTP, refuses("\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03"+strings.Repeat("\x00", 512)+"\r\n\r\n", 400)},
	{"F91", "nonsense", noHTTP, func(w *platform) {
		for _, text := range []string{"\r\n\r\n\r\n", strings.Repeat("\x00", 4096) + "\r\n\r\n", "GET\r\n\r\n", "PRI * HTTP/2.0\r\n\r\nXX\r\n\r\n", "\xff\xfe\r\n\r\n"} {
			refuses(text, 400, 404, 0)(w)
		}
	}},
	{"F91", "OPTIONS *", "", func(w *platform) {
		if r := w.raw("OPTIONS * HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n"); r.status >= 500 || len(r.body) > 0 {
			w.Errorf("answered %d %q", r.status, r.body)
		}
	}},
	{"F91", "expects to be asked and sends nothing", answered + "{code=408}", func(w *platform) {
		r := w.raw(request("POST /function/honest.shop/attack", "Expect: 100-continue", "Content-Length: 10", "", ""))
		for r.status == 100 {
			r = response{status: 408} // it was asked, and stays silent; the limit comes below
		}
		w.until("it was given up", func() bool { return w.counter(answered+"{code=408}") == 1 })
	}},
}

// patient are the clients that take their time.
var patient = []attack{
	{"F77", "headers a byte at a time", "", func(w *platform) {
		conn := w.dial(w.calls)
		go drip(conn, "GET "+attackPath+" HTTP/1.1\r\nHost: h\r\nX-A: "+strings.Repeat("a", 1000))
		w.isCut(conn)
	}},
	{"F77", "nothing at all", "", func(w *platform) { w.isCut(w.dial(w.calls)) }},
	{"F77", "a small body a byte at a time", answered + "{code=408}", func(w *platform) {
		conn := w.dial(w.calls)
		_, _ = io.WriteString(conn, post("", "Content-Length: 1000"))
		go drip(conn, strings.Repeat("a", 1000))
		if r := readResponse(bufio.NewReader(conn)); r.status != 408 || r.header.Get("Windlass-Executed") != "no" {
			w.Errorf("answered %d %v", r.status, r.err)
		}
	}},
	{"F77", "a body that is never ended, of a function that waits for it", answered + "{code=504}", func(w *platform) {
		ticket, _, _ := w.bodyOfEvil()
		w.claims(ticket).listens()
	}},
	{"F77", "an answer that nobody reads", "", func(w *platform) {
		ticket, conn, _ := w.bodyOfEvil()
		a := w.claims(ticket)
		out := callwire.NewOutflow(a.wire, a.number)
		a.send(head(callwire.Head{Status: 200, ContentLength: -1}))
		letGo := make(chan error, 1)
		go func() {
			var err error
			for err == nil {
				_, err = out.Write(make([]byte, 64<<10))
			}
			letGo <- err
		}()
		go func() {
			for {
				f, err := a.wire.Read()
				switch {
				case err != nil || f.Kind == callwire.KindCancel:
					out.End(errCancelled)
					return
				case f.Kind == callwire.KindWindow:
					n, _ := callwire.ParseCount(f)
					out.Open(n)
				}
			}
		}()
		if err := receive(w.T, letGo, "the end of an answer that nobody reads"); !errors.Is(err, errCancelled) {
			w.Errorf("it ended with %v", err)
		}
		_ = conn.Close()
	}},
	{"F78", "500 connections that wait", "", func(w *platform) {
		for range 500 {
			_, _ = io.WriteString(w.dial(w.calls), "GET "+attackPath+" HTTP/1.1\r\n")
		}
	}},
}

// bodyOfEvil calls evil with a body that does not end, and returns the ticket.
func (w *platform) bodyOfEvil() (*agentwire.Ticket, io.Closer, pullStream) {
	w.Helper()
	own := w.instanceOf(evil)
	pulls := w.hello(w.asAgent(), own, w.token(podOf(own), nil))
	_ = pulls.Send(pull(1))
	conn := w.dial(w.calls)
	_, _ = io.WriteString(conn, request("POST /function/evil.shop/", "Transfer-Encoding: chunked", "", "1\r\nA\r\n"))
	ticket, err := nextTicket(pulls)
	if err != nil {
		w.Fatal(err)
	}
	return ticket, conn, pulls
}

// drip writes a byte each 100 ms, until the other side has had enough.
func drip(conn io.Writer, text string) {
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for i := range text {
		if _, err := io.WriteString(conn, text[i:i+1]); err != nil {
			return
		}
		<-tick.C
	}
}

// isCut waits until the other side has ended a connection: without an answer, or
// with one if the time was up within a line.
func (w *platform) isCut(conn io.Reader) {
	w.Helper()
	got, err := io.ReadAll(conn)
	if len(got) > 0 && !strings.HasPrefix(string(got), "HTTP/1.1 400 Bad Request\r\nWindlass-Executed: no\r\n") || isTimeout(err) {
		w.Errorf("got %.100q, %v", got, err)
	}
}

// bombs are manifests that are small, or deep, and would be large.
func bombs() []string {
	laughs := "a0: &a0 [x,x,x,x,x,x,x,x,x,x]\n"
	for n := range 12 {
		laughs += fmt.Sprintf("a%d: &a%d [%s*a%d]\n", n+1, n+1, strings.Repeat(fmt.Sprintf("*a%d,", n), 9), n)
	}
	const head = "apiVersion: windlass.dev/v1alpha1\nkind: Function\nmetadata: {name: f}\n"
	return []string{
		head + laughs, head + "spec: " + strings.Repeat("[", 100_000), head + "spec: " + strings.Repeat("{a: ", 100_000),
		head + "spec: {template: {timeout: 1e999999999}}", head + "spec: {template: {env: [" + strings.Repeat("{name: A},", 100_000) + "]}}",
		strings.Repeat(`{"a":`, 200_000),
	}
}

var injections = []attack{
	{"F92", "manifests that are bombs", "", func(w *platform) {
		for _, bomb := range bombs() {
			functions, err := v1alpha1.Decode([]byte(bomb), "bomb")
			for _, fn := range functions {
				v1alpha1.Default(fn)
				if len(v1alpha1.Validate(fn)) == 0 {
					w.Errorf("%.100q is a valid function", bomb)
				}
			}
			if len(fmt.Sprint(err)) > 64<<10 {
				w.Errorf("%.100q: the error has %d bytes", bomb, len(fmt.Sprint(err)))
			}
		}
	}},
	{"F93", "line feeds, escapes and JSON in all that is logged", atTheEdge, func(w *platform) {
		for _, text := range []string{"%0d%0a%7b%22level%22:%22ERROR%22%7d", "%1b%5b31m" + marker, "%22,%22msg%22:%22" + marker} {
			r := w.raw("GET /function/" + text + "." + text + " HTTP/1.1\r\nHost: h\r\nUser-Agent: \"" + marker + "\\\"\r\nX-Forwarded-For: " + marker + "\r\n\r\n")
			if r.status != 404 || strings.ContainsAny(r.body, "\x1b\r") {
				w.Errorf("answered %d %q", r.status, r.body)
			}
		}
	}},
	{"F93", "a hello of line feeds and escapes", "", func(w *platform) {
		own := w.instanceOf(evil)
		own.CID += "\r\n\x1b[31m" + marker
		stream := w.hello(w.asAgent(), own, w.token(podOf(own), nil))
		_ = ends(w, stream.Recv)
	}},
}
