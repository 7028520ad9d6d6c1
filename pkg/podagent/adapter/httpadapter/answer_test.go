package httpadapter

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/windlass-dev/windlass/pkg/invocation"
	"github.com/windlass-dev/windlass/pkg/podagent/adapter"
)

func TestAnswerThatIsNotWholeIsAnError(t *testing.T) {
	for _, tc := range []struct {
		name, answer string
		want         error
		heads        int
	}{
		{"fewer bytes than Content-Length", "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nabc", adapter.ErrFunctionLost, 1},
		{"chunks without the last", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n", adapter.ErrFunctionLost, 1},
		{"half a chunk", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n9\r\nabc", adapter.ErrFunctionLost, 1},
		{"a chunk that is none", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nxyz\r\n" + strings.Repeat("x", 9999), adapter.ErrBadAnswer, 1},
		{"no HTTP", "220 mail.example ESMTP\r\n\r\n", adapter.ErrBadAnswer, 0},
		{"bad Content-Length", "HTTP/1.1 200 OK\r\nContent-Length: many\r\n\r\n", adapter.ErrBadAnswer, 0},
		{"two lengths", "HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nab", adapter.ErrBadAnswer, 0},
		{"negative length", "HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n", adapter.ErrBadAnswer, 0},
		{"another version", "HTTP/2.0 200 OK\r\nContent-Length: 0\r\n\r\n", adapter.ErrBadAnswer, 0},
		{"encoding that HTTP does not have", "HTTP/1.1 200 OK\r\nTransfer-Encoding: rot13\r\n\r\n", adapter.ErrBadAnswer, 0},
		{"header without a name", "HTTP/1.1 200 OK\r\n: x\r\n\r\n", adapter.ErrBadAnswer, 0},
		{"chunk of more bytes than there are", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nfffffffffffffffff\r\n", adapter.ErrBadAnswer, 1},
		{"trailers without bounds", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\nX-A: " + strings.Repeat("a", 1<<20) + "\r\n\r\n", adapter.ErrBadAnswer, 1},
		{"status below 100", "HTTP/1.1 099 Odd\r\nContent-Length: 0\r\n\r\n", adapter.ErrBadAnswer, 0},
		{"status above 599", "HTTP/1.1 700 Odd\r\nContent-Length: 0\r\n\r\n", adapter.ErrBadAnswer, 0},
		{"protocol switch that nobody asked for", "HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: Upgrade\r\n\r\n", adapter.ErrBadAnswer, 0},
		{"head without bounds", "HTTP/1.1 200 OK\r\n" + strings.Repeat("X-A: "+strings.Repeat("a", 1<<10)+"\r\n", 1100), adapter.ErrBadAnswer, 0},
	} {
		t.Run(tc.name, func(t *testing.T) {
			a := script(t, func(c net.Conn) {
				readHead(c)
				_, _ = io.WriteString(c, tc.answer)
				if tc.want == adapter.ErrBadAnswer {
					// Not this end breaks the connection off.
					_, _ = io.Copy(io.Discard, c)
				}
			})
			w := &recorder{}
			wantError(t, a.Invoke(t.Context(), get("/"), w), tc.want)
			if w.heads != tc.heads {
				t.Errorf("%d heads written, want %d", w.heads, tc.heads)
			}
		})
	}
}

func TestAnswerWithoutLengthEndsWithTheConnection(t *testing.T) {
	w := must(t, script(t, answering("HTTP/1.0 200 OK\r\n\r\nabc")), get("/"))
	if w.body.String() != "abc" || w.head.ContentLength != -1 {
		t.Errorf("got %q of length %d, want abc of length -1", w.body.String(), w.head.ContentLength)
	}
}

func TestTrailersMayHave64KiB(t *testing.T) {
	answer := func(bytes int) string {
		return "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\nX-A: " + strings.Repeat("a", bytes) + "\r\n\r\n"
	}
	if w := must(t, script(t, answering(answer(60<<10))), get("/")); len(w.trailer.Get("X-A")) != 60<<10 {
		t.Errorf("%d bytes came, want %d", len(w.trailer.Get("X-A")), 60<<10)
	}
	a := script(t, func(c net.Conn) {
		answering(answer(80 << 10))(c)
		_, _ = io.Copy(io.Discard, c) // not this end breaks the connection off
	})
	wantError(t, a.Invoke(t.Context(), get("/"), &recorder{}), adapter.ErrBadAnswer)
}

func TestInterimAnswersArePassedOn(t *testing.T) {
	hints := "HTTP/1.1 103 Early Hints\r\nConnection: X-Hop\r\nX-Hop: 1\r\nLink: </a>\r\n\r\n"
	interim := "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 102 Processing\r\n\r\n" + strings.Repeat(hints, 20)
	w := must(t, script(t, answering(interim+"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")), get("/"))
	if w.heads != 1 || w.head.Status != 200 || w.body.String() != "ok" || w.head.Header.Get("Link") != "" {
		t.Errorf("got %d heads, last %+v, body %q", w.heads, w.head, w.body.String())
	}
	if len(w.interim) != 21 || w.interim[0].Status != 102 {
		t.Fatalf("interim answers %+v", w.interim)
	}
	for _, h := range w.interim[1:] {
		if diff := cmp.Diff(adapter.Head{Status: 103, Header: invocation.Fields{{Name: "Link", Value: "</a>"}}}, h); diff != "" {
			t.Errorf("head (-want +got):\n%s", diff)
		}
	}
}

func TestInterimAnswersWithoutEndAreRefused(t *testing.T) {
	a := script(t, func(c net.Conn) {
		readHead(c)
		for {
			if _, err := io.WriteString(c, "HTTP/1.1 103 Early Hints\r\n\r\n"); err != nil {
				return
			}
		}
	})
	wantError(t, a.Invoke(t.Context(), get("/"), &recorder{}), adapter.ErrBadAnswer)
}

func TestHeadComesBeforeTheBodyAndEachPartAtOnce(t *testing.T) {
	next := make(chan struct{})
	a := serve(t, func(w http.ResponseWriter, _ *http.Request) {
		_ = http.NewResponseController(w).Flush()
		for _, part := range []string{"a", "b", "c"} {
			<-next
			_, _ = io.WriteString(w, part)
			_ = http.NewResponseController(w).Flush()
		}
		<-next
	})
	// Each part is only sent once the one before it was passed on.
	w := &recorder{onHead: func() { next <- struct{}{} }, onWrite: func() error { next <- struct{}{}; return nil }}
	if err := a.Invoke(t.Context(), get("/"), w); err != nil {
		t.Fatal(err)
	}
	if w.body.String() != "abc" {
		t.Errorf("body %q, want abc", w.body.String())
	}
}

func TestAnswerHeadersAreEndToEnd(t *testing.T) {
	w := must(t, script(t, answering("HTTP/1.1 404 Not Found\r\nConnection: X-Hop, keep-alive\r\nX-Hop: 1\r\nKeep-Alive: timeout=5\r\n"+
		"Set-Cookie: a=1\r\nSet-Cookie: b=2\r\nContent-Encoding: gzip\r\nContent-Length: 4\r\n\r\n\x1f\x8b\x00\x00")), get("/"))
	want := adapter.Head{Status: 404, ContentLength: 4, Header: invocation.Fields{
		{Name: "Set-Cookie", Value: "a=1"}, {Name: "Set-Cookie", Value: "b=2"}, {Name: "Content-Encoding", Value: "gzip"},
	}}
	if diff := cmp.Diff(want, w.head); diff != "" {
		t.Errorf("head (-want +got):\n%s", diff)
	}
	if w.body.Len() != 4 {
		t.Errorf("body of %d bytes, want the 4 that were sent", w.body.Len())
	}
}

func TestAnswerToHeadHasALengthAndNoBody(t *testing.T) {
	call := get("/")
	call.Method = http.MethodHead
	w := must(t, script(t, answering("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n")), call)
	if w.head.ContentLength != 5 || w.body.Len() != 0 {
		t.Errorf("length %d and %d bytes, want 5 and 0", w.head.ContentLength, w.body.Len())
	}
}

// What comes behind an answer, or where none may be, is nobody's answer.
func TestBytesBehindAnAnswerNeverReachTheNextCall(t *testing.T) {
	const evil = "HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nevil"
	for _, tc := range []struct{ name, method, answer string }{
		{"a length", http.MethodGet, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"},
		{"the last chunk", http.MethodGet, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n"},
		{"the head of HEAD", http.MethodHead, "HTTP/1.1 200 OK\r\nContent-Length: 43\r\n\r\n"},
		{"204", http.MethodGet, "HTTP/1.1 204 No Content\r\nContent-Length: 43\r\n\r\n"},
		{"304", http.MethodGet, "HTTP/1.1 304 Not Modified\r\nContent-Length: 43\r\n\r\n"},
	} {
		for _, late := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, late %t", tc.name, late), func(t *testing.T) {
				answered, said := make(chan struct{}), make(chan struct{})
				a := script(t, func(c net.Conn) {
					in := bufio.NewReader(c)
					for {
						request, err := http.ReadRequest(in)
						switch {
						case err != nil:
							return
						case request.RequestURI == "/next":
							_, _ = io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\ngood")
						case late:
							_, _ = io.WriteString(c, tc.answer)
							<-answered
							_, _ = io.WriteString(c, evil)
							close(said)
						default:
							_, _ = io.WriteString(c, tc.answer+evil)
							close(said)
						}
					}
				})
				call := get("/")
				call.Method = tc.method
				must(t, a, call)
				close(answered)
				<-said
				if w := must(t, a, get("/next")); w.body.String() != "good" {
					t.Errorf("the next call got %q", w.body.String())
				}
			})
		}
	}
}

// What looks idle may be about to send the body that its head has announced.
func TestNoCallFollowsAnAnswerWhoseBodyMayStillCome(t *testing.T) {
	const evil = "HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nevil"
	for _, tc := range []struct{ name, method, answer string }{
		{"HEAD", http.MethodHead, "HTTP/1.1 200 OK\r\nContent-Length: 43\r\n\r\n"},
		{"HEAD in chunks", http.MethodHead, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"},
		{"204", http.MethodGet, "HTTP/1.1 204 No Content\r\nContent-Length: 43\r\n\r\n"},
		{"304", http.MethodGet, "HTTP/1.1 304 Not Modified\r\nTransfer-Encoding: chunked\r\n\r\n"},
		{"HTTP/1.0 with a coding", http.MethodGet, "HTTP/1.0 200 OK\r\nConnection: keep-alive\r\nTransfer-Encoding: chunked\r\nContent-Length: 2\r\n\r\nok"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			a := script(t, func(c net.Conn) {
				in := bufio.NewReader(c)
				if first, err := http.ReadRequest(in); err != nil || first.RequestURI == "/next" {
					_, _ = io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\ngood")
					return
				}
				_, _ = io.WriteString(c, tc.answer)
				if _, err := http.ReadRequest(in); err == nil {
					_, _ = io.WriteString(c, evil)
				}
			})
			call := get("/")
			call.Method = tc.method
			must(t, a, call)
			if w := must(t, a, get("/next")); w.body.String() != "good" {
				t.Errorf("the next call got %q", w.body.String())
			}
		})
	}
}

func TestConnectionsAreKeptBehindAnswersWithoutABody(t *testing.T) {
	for method, answer := range map[string]string{
		http.MethodHead: "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n",
		http.MethodGet:  "HTTP/1.1 304 Not Modified\r\nEtag: a\r\n\r\n",
	} {
		a := script(t, func(c net.Conn) { answering(answer)(c); _, _ = io.Copy(io.Discard, c) })
		call := get("/")
		call.Method = method
		must(t, a, call)
		c := a.idle.last()
		if c == nil {
			t.Fatalf("%s: the connection was not kept", method)
		}
		c.close()
	}
}

func TestA15WhatAFunctionDidWrongIsSaidInPlainWords(t *testing.T) {
	for want, treat := range map[string]func(net.Conn){
		"the function broke off the call: it closed the connection before its answer was complete": func(c net.Conn) { readHead(c) },
		`the function's answer is not valid: it is no HTTP/1.1: it begins with "no http"`:          answering("no http\r\n\r\n"),
	} {
		a := script(t, treat)
		if err := a.Invoke(t.Context(), get("/"), &recorder{}); err == nil || err.Error() != want {
			t.Errorf("said %v\nwant %s", err, want)
		}
	}
}
