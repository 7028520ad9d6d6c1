package main

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"math"
	"net/http"
	"net/http/httputil"
	"strings"
	"testing"
)

func TestRelayHeadKeepsWhatIsForTheOtherSide(t *testing.T) {
	for name, c := range map[string]struct {
		head, own, want string
		m               message
	}{
		"a request": {
			"GET /a?b HTTP/1.1\r\nWindlass-Carrier: 1 2 3 4\r\nHost: h\r\nConnection: keep-alive\r\nA:  b \r\n\r\n", "",
			"GET /a?b HTTP/1.1\r\nHost: h\r\nA:  b \r\n\r\n", message{method: "GET", length: -1, own: []byte("1 2 3 4")},
		},
		"a request with a length": {
			"POST / HTTP/1.1\r\nContent-Length: 12\r\n\r\n", "", "POST / HTTP/1.1\r\nContent-Length: 12\r\n\r\n", message{method: "POST", length: 12},
		},
		"a chunked request": {
			"PUT / HTTP/1.1\r\ntransfer-encoding: Chunked\r\n\r\n", "", "PUT / HTTP/1.1\r\ntransfer-encoding: Chunked\r\n\r\n",
			message{method: "PUT", length: -1, chunked: true},
		},
		"an answer": {
			"HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\n", "Windlass-Carrier: 7\r\n", "HTTP/1.1 200 OK\r\nWindlass-Carrier: 7\r\nContent-Length: 3\r\n\r\n",
			message{status: 200, length: 3},
		},
		"an answer without a reason": {"HTTP/1.1 204\r\n\r\n", "", "HTTP/1.1 204\r\n\r\n", message{status: 204, length: -1}},
		"an answer of HTTP/1.0":      {"HTTP/1.0 404 No\r\n\r\n", "", "HTTP/1.0 404 No\r\n\r\n", message{status: 404, length: -1, closing: true}},
		"an answer that closes": {
			"HTTP/1.1 200 OK\r\nConnection: Close\r\nKeep-Alive: 1\r\n\r\n", "", "HTTP/1.1 200 OK\r\n\r\n", message{status: 200, length: -1, closing: true},
		},
		"a switch": {"HTTP/1.1 101 S\r\nUpgrade: x\r\n\r\n", "", "HTTP/1.1 101 S\r\nUpgrade: x\r\n\r\n", message{status: 101, length: -1, switching: true}},
	} {
		t.Run(name, func(t *testing.T) {
			out, m, err := relayHead(nil, []byte(c.head), []byte(c.own))
			if err != nil || string(out) != c.want {
				t.Errorf("%q, %v\nwant %q", out, err, c.want)
			}
			if !bytes.Equal(m.own, c.m.own) {
				t.Errorf("the carrier's header is %q", m.own)
			}
			if m.own = c.m.own; m.status != c.m.status || m.method != c.m.method || m.length != c.m.length || m.chunked != c.m.chunked ||
				m.closing != c.m.closing || m.switching != c.m.switching {
				t.Errorf("%+v, want %+v", m, c.m)
			}
		})
	}
}

// ambiguous are heads that two readers might read in two ways.
var ambiguous = []string{
	"GET / HTTP/1.1\nHost: h\r\n\r\n",
	"GET / HTTP/1.1\r\nA: b\rC: d\r\n\r\n",
	"GET / HTTP/1.1\r\nA: b\x00\r\n\r\n",
	"GET / HTTP/1.1\r\n folded: x\r\n\r\n",
	"GET / HTTP/1.1\r\nA : b\r\n\r\n",
	"GET / HTTP/1.1\r\n: b\r\n\r\n",
	"GET / HTTP/1.1\r\nA\r\n\r\n",
	"GET / HTTP/1.0\r\nHost: h\r\n\r\n",
	"GET  / HTTP/1.1\r\n\r\n",
	"GET / x HTTP/1.1\r\n\r\n",
	"G(T / HTTP/1.1\r\n\r\n",
	"POST / HTTP/1.1\r\nContent-Length: 1\r\nContent-Length: 1\r\n\r\n",
	"POST / HTTP/1.1\r\nContent-Length: +1\r\n\r\n",
	"POST / HTTP/1.1\r\nContent-Length: 1, 1\r\n\r\n",
	"POST / HTTP/1.1\r\nContent-Length:\r\n\r\n",
	"POST / HTTP/1.1\r\nContent-Length: 9999999999999999999\r\n\r\n",
	"POST / HTTP/1.1\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n",
	"POST / HTTP/1.1\r\nTransfer-Encoding: gzip, chunked\r\n\r\n",
	"POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n",
	"POST / HTTP/1.1\r\nTransfer-Encoding: \x0bchunked\r\n\r\n",
	"GET / HTTP/1.1\r\nWindlass-Carrier: 1\r\nWindlass-Carrier: 2\r\n\r\n",
	"HTTP/1.1 20 OK\r\n\r\n",
	"HTTP/1.1 2000 OK\r\n\r\n",
	"HTTP/1.1 99x OK\r\n\r\n",
	"HTTP/1.2 200 OK\r\n\r\n",
	"HTTP/1.1 600 OK\r\n\r\n",
	"HTTP/1.1 200 OK\r\n\r\nmore",
}

func TestRelayHeadRefusesWhatTwoReadersReadInTwoWays(t *testing.T) {
	for _, head := range ambiguous {
		if out, _, err := relayHead(nil, []byte(head), nil); !errors.Is(err, errHead) {
			t.Errorf("%q became %q, %v", head, out, err)
		}
	}
}

func TestWhereABodyEndsFollowsFromItsHead(t *testing.T) {
	toTheEnd := body{left: math.MaxInt64, untilClose: true}
	for name, c := range map[string]struct {
		m     message
		asked string
		want  body
	}{
		"a request without a length": {message{length: -1}, "", body{}},
		"a request of some length":   {message{length: 5}, "", body{left: 5}},
		"an answer of some length":   {message{status: 200, length: 5}, "GET", body{left: 5}},
		"an answer to a HEAD":        {message{status: 200, length: 5}, "HEAD", body{}},
		"no content":                 {message{status: 204, length: -1}, "GET", body{}},
		"not modified":               {message{status: 304, length: 5}, "GET", body{}},
		"an interim answer":          {message{status: 103, length: -1}, "GET", body{}},
		"chunks":                     {message{status: 200, length: -1, chunked: true}, "GET", body{chunked: true}},
		"an answer without a length": {message{status: 200, length: -1}, "GET", toTheEnd},
	} {
		if got := c.m.body(c.asked); got != c.want {
			t.Errorf("%s: %+v, want %+v", name, got, c.want)
		}
	}
}

func TestChunksEndWhereTheyEnd(t *testing.T) {
	for _, whole := range []string{
		"0\r\n\r\n",
		"5\r\nabcde\r\n0\r\n\r\n",
		"5;a=\"b\"\r\nabcde\r\nA\r\n0123456789\r\n000\r\n\r\n",
		"1\r\n\n\r\n0\r\nTrailer: x\r\nOther: y\r\n\r\n",
	} {
		for parts := 1; parts <= 3; parts++ {
			b, n, done := body{chunked: true}, 0, false
			text := whole + "next"
			for !done && n < len(text) {
				passed, over, err := b.pass([]byte(text[n:min(len(text), n+parts)]))
				if err != nil {
					t.Fatalf("%q: %v", whole, err)
				}
				n, done = n+passed, over
			}
			if !done || n != len(whole) {
				t.Errorf("%q in parts of %d ends after %d bytes: %v", whole, parts, n, done)
			}
		}
	}
	for _, wrong := range []string{
		"\r\n", "g\r\n", " 5\r\nabcde\r\n", "5\nabcde", "5\r\nabcdef\r\n", "5 \r\nabcde\r\n", ";a\r\n", "1000000000000000\r\n",
		"5;" + strings.Repeat("a", mostOfLine) + "\r\n", "0\r\na\rb\r\n", "0\r\n" + strings.Repeat("a: b\r\n", mostOfTrailers/6+1),
	} {
		b := body{chunked: true}
		if n, done, err := b.pass([]byte(wrong)); !errors.Is(err, errBody) {
			t.Errorf("%.40q: %d bytes, %v, %v", wrong, n, done, err)
		}
	}
}

func TestMarksAreReadAsTheyAreWritten(t *testing.T) {
	want := mark{1, 0, 60_000_000_000, 12345}
	line := string(appendMark(nil, want))
	value, _ := strings.CutPrefix(line, carrierHeader+": ")
	if got, err := parseMark([]byte(strings.TrimSuffix(value, "\r\n"))); err != nil || got != want {
		t.Errorf("%q is %v, %v", line, got, err)
	}
	for _, wrong := range []string{"", "1 2 3", "1 2 3 4 5", "1 2 3 -4", "1  2 3 4"} {
		if got, err := parseMark([]byte(wrong)); err == nil {
			t.Errorf("%q is %v", wrong, got)
		}
	}
}

// Where the relay sees the end of a message, net/http sees it too, or refuses it.
func FuzzRelayedRequestsEndWhereNetHTTPSeesTheirEnd(f *testing.F) {
	for _, head := range ambiguous {
		f.Add([]byte(head))
	}
	f.Add([]byte("POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 3\r\n\r\nabcGET / HTTP/1.1\r\n"))
	f.Add([]byte("POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\nGET"))
	f.Fuzz(func(t *testing.T, text []byte) {
		n := headLen(text)
		if n == 0 {
			return
		}
		out, m, err := relayHead(nil, text[:n], nil)
		if err != nil || m.status != 0 {
			return
		}
		ends := m.body("")
		passed, done, err := ends.pass(text[n:])
		if err != nil || !done {
			return
		}
		rest := bufio.NewReader(io.MultiReader(bytes.NewReader(out), bytes.NewReader(text[n:])))
		request, err := http.ReadRequest(rest)
		if err != nil {
			return
		}
		if _, err := io.Copy(io.Discard, request.Body); err != nil {
			return
		}
		left, _ := io.ReadAll(rest)
		if want := text[n+passed:]; !bytes.Equal(left, want) {
			t.Errorf("net/http leaves %q, the relay %q", left, want)
		}
	})
}

// In whatever parts chunks come, they end at the same byte, and net/http reads them to it.
func FuzzChunksEndAtTheSameByteInAnyParts(f *testing.F) {
	f.Add([]byte("5;x\r\nabcde\r\n0\r\nA: b\r\n\r\nmore"), 3)
	f.Add([]byte("0\r\n\r\n"), 1)
	f.Fuzz(func(t *testing.T, text []byte, parts int) {
		whole := body{chunked: true}
		n, done, err := whole.pass(text)
		again, at := body{chunked: true}, 0
		for parts = max(1, parts); at < len(text); {
			passed, over, failed := again.pass(text[at:min(len(text), at+min(parts, len(text)))])
			if at += passed; failed != nil || over {
				if at != n || over != done || !errors.Is(failed, err) {
					t.Errorf("at once %d, %v, %v; in parts %d, %v, %v", n, done, err, at, over, failed)
				}
				break
			}
		}
		if done {
			if _, err := io.Copy(io.Discard, httputil.NewChunkedReader(bytes.NewReader(text[:n]))); err != nil {
				t.Errorf("%q is over, and net/http says %v", text[:n], err)
			}
		}
	})
}
