package lambda

import (
	"bufio"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"

	"github.com/windlass-dev/windlass/pkg/podagent/adapter"
)

// streamed is an answer that the test writes part by part.
type streamed struct {
	*harness
	io.Writer
	conn net.Conn
}

// stream begins a streamed answer to the call id.
func (s *harness) stream(id, contentType string) *streamed {
	s.Helper()
	conn, err := s.l.dial(s.Context())
	if err != nil {
		s.Fatal(err)
	}
	_, err = fmt.Fprintf(conn, "POST %s/invocation/%s/response HTTP/1.1\r\nHost: 127.0.0.1:9001\r\nContent-Type: %s\r\n%s: streaming\r\n"+
		"Transfer-Encoding: chunked\r\nTrailer: %s, %s\r\n\r\n", base, id, contentType, headMode, headErrorType, headErrorBody)
	if err != nil {
		s.Fatal(err)
	}
	return &streamed{harness: s, conn: conn}
}

func (r *streamed) send(part string) {
	r.Helper()
	if _, err := fmt.Fprintf(r.conn, "%x\r\n%s\r\n", len(part), part); err != nil {
		r.Fatal(err)
	}
	synctest.Wait()
}

// finish ends the answer and returns the status of the reply.
func (r *streamed) finish(trailer string) int {
	r.Helper()
	defer r.conn.Close()
	if _, err := io.WriteString(r.conn, "0\r\n"+trailer+"\r\n"); err != nil {
		r.Fatal(err)
	}
	return replyOf(r.conn)
}

// replyOf is the status of the reply, or 0 if there is none.
func replyOf(conn io.Reader) int {
	resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		return 0
	}
	defer resp.Body.Close()
	_, _ = io.Copy(io.Discard, resp.Body)
	return resp.StatusCode
}

// errorTrailer is how a runtime client tells of an error within an answer.
func errorTrailer(kind, body string) string {
	return headErrorType + ": " + kind + "\r\n" + headErrorBody + ": " + base64.StdEncoding.EncodeToString([]byte(body)) + "\r\n"
}

const report = `{"errorMessage":"no","errorType":"Error"}`

func TestStreamedAnswerIsPassedOnPartByPart(t *testing.T) {
	inBubble(t, 1, func(s *harness) {
		p := s.invoke("a", "1")
		s.next()
		r := s.stream("a", "text/event-stream")
		for _, want := range []string{"x", "xy", "xyz"} {
			r.send(want[len(want)-1:])
			if got := p.w.body.String(); got != want {
				s.Errorf("got %q, want %q", got, want)
			}
		}
		if status := r.finish(""); status != 202 {
			s.Errorf("status %d", status)
		}
		s.wantAnswer(p, 200, "xyz")
		if got := p.w.head.Header.Get("Content-Type"); got != "text/event-stream" || p.w.head.ContentLength != -1 {
			s.Errorf("Content-Type %q, length %d", got, p.w.head.ContentLength)
		}
		q := s.invoke("b", "1")
		s.next()
		s.post("b", "response", "2")
		s.wantAnswer(q, 200, "2")
	})
}

func TestEmptyStreamedAnswer(t *testing.T) {
	inBubble(t, 1, func(s *harness) {
		p := s.invoke("a", "1")
		s.next()
		s.stream("a", "text/plain").finish("")
		s.wantAnswer(p, 200, "")
	})
}

func TestErrorInAStreamedAnswer(t *testing.T) {
	t.Run("before its first byte is a function error", func(t *testing.T) {
		inBubble(t, 1, func(s *harness) {
			p := s.invoke("a", "1")
			s.next()
			s.stream("a", "text/plain").finish(errorTrailer("Function.Oops", report))
			s.wantAnswer(p, 500, report)
			if p.w.head.FunctionError != "Function.Oops" {
				s.Errorf("function error %q", p.w.head.FunctionError)
			}
		})
	})
	t.Run("within its prelude too", func(t *testing.T) {
		inBubble(t, 1, func(s *harness) {
			p := s.invoke("a", "1")
			s.next()
			r := s.stream("a", httpResponse)
			r.send(`{"statusCode":`)
			r.finish(errorTrailer("Oops", report))
			s.wantAnswer(p, 500, report)
		})
	})
	t.Run("later on cuts the answer short", func(t *testing.T) {
		inBubble(t, 1, func(s *harness) {
			p := s.invoke("a", "1")
			s.next()
			r := s.stream("a", "text/plain")
			r.send("x")
			if status := r.finish(errorTrailer("Function.Oops", report)); status != 202 {
				s.Errorf("status %d", status)
			}
			err := p.result()
			s.wantError(err, adapter.ErrFunctionLost)
			if !strings.Contains(err.Error(), "Function.Oops") {
				s.Errorf("%q does not say which error", err)
			}
		})
	})
}

func TestAnswerWhoseConnectionBreaksIsLost(t *testing.T) {
	t.Run("streamed", func(t *testing.T) {
		inBubble(t, 1, func(s *harness) {
			p := s.invoke("a", "1")
			s.next()
			r := s.stream("a", "text/plain")
			r.send("x")
			r.conn.Close()
			s.wantError(p.result(), adapter.ErrFunctionLost)
		})
	})
	t.Run("buffered", func(t *testing.T) {
		inBubble(t, 1, func(s *harness) {
			p := s.invoke("a", "1")
			s.next()
			conn, err := s.l.dial(s.Context())
			if err != nil {
				s.Fatal(err)
			}
			_, _ = fmt.Fprintf(conn, "POST %s/invocation/a/response HTTP/1.1\r\nHost: 127.0.0.1:9001\r\nContent-Length: 9\r\n\r\nabc", base)
			conn.Close()
			s.wantError(p.result(), adapter.ErrFunctionLost)
			if p.w.heads != 0 {
				s.Error("a head was written")
			}
		})
	})
}

func TestStreamedAnswerWhoseCallEnds(t *testing.T) {
	for _, tc := range []struct {
		name   string
		end    func(p *pending)
		want   error
		status int
	}{
		{"by being given up: the rest is thrown away", func(p *pending) { p.cancel() }, adapter.ErrFunctionLost, 202},
		{"by its deadline: the rest is refused", func(*pending) {}, adapter.ErrTimedOut, 400},
	} {
		t.Run(tc.name, func(t *testing.T) {
			inBubble(t, 1, func(s *harness) {
				p := s.invoke("a", "1")
				s.next()
				r := s.stream("a", "text/plain")
				r.send("x")
				tc.end(p)
				s.wantError(p.result(), tc.want)
				r.send("y")
				if status := r.finish(""); status != tc.status {
					s.Errorf("status %d, want %d", status, tc.status)
				}
				if got := p.w.body.String(); got != "x" {
					s.Errorf("%q was written, want x alone", got)
				}
			})
		})
	}
	t.Run("by an error of its writer: the next call can run", func(t *testing.T) {
		inBubble(t, 1, func(s *harness) {
			gone := errors.New("gone")
			p := s.invoke("a", "1")
			p.w.onWrite = func() error { return gone }
			s.next()
			r := s.stream("a", "text/plain")
			r.send("x")
			if err := p.result(); err != gone {
				s.Errorf("got %v, want %v", err, gone)
			}
			q := s.invoke("b", "2")
			r.send("y")
			r.finish("")
			s.next()
			s.post("b", "response", "3")
			s.wantAnswer(q, 200, "3")
		})
	})
}

func TestHTTPShapedAnswer(t *testing.T) {
	const prelude = `{"statusCode":418,"headers":{"x-a":"1","content-length":5,"x-n":7,"connection":"close"},"cookies":["a=1","b=2"]}` + "\x00\x00\x00\x00\x00\x00\x00\x00"
	want := adapter.Head{Status: 418, ContentLength: -1, Header: adapter.FieldsOf(http.Header{
		"X-A": {"1"}, "X-N": {"7"}, "Set-Cookie": {"a=1", "b=2"}, "Content-Type": {"application/octet-stream"},
	})}
	t.Run("streamed, cut anywhere", func(t *testing.T) {
		inBubble(t, 1, func(s *harness) {
			p := s.invoke("a", "1")
			s.next()
			r := s.stream("a", httpResponse)
			for _, part := range []string{prelude[:20], prelude[20 : len(prelude)-3], prelude[len(prelude)-3:] + "te"} {
				r.send(part)
			}
			if diff := cmp.Diff(want, p.w.head); diff != "" {
				s.Errorf("head before the body's end (-want +got):\n%s", diff)
			}
			r.send("a\x00pot")
			r.finish("")
			s.wantAnswer(p, 418, "tea\x00pot")
		})
	})
	t.Run("buffered", func(t *testing.T) {
		inBubble(t, 1, func(s *harness) {
			p := s.invoke("a", "1")
			s.next()
			s.want(s.post("a", "response", prelude+"teapot", "Content-Type", httpResponse), 202, "OK")
			s.wantAnswer(p, 418, "teapot")
			if diff := cmp.Diff(want, p.w.head); diff != "" {
				s.Errorf("head (-want +got):\n%s", diff)
			}
		})
	})
}

func TestHTTPShapedAnswerThatIsNotValid(t *testing.T) {
	const end = "\x00\x00\x00\x00\x00\x00\x00\x00"
	for name, text := range map[string]string{
		"no prelude":             "hello",
		"no JSON":                "hello" + end,
		"status out of range":    `{"statusCode":99}` + end,
		"header that is no text": `{"headers":{"a":{}}}` + end,
		"header name":            `{"headers":{"a b":"1"}}` + end,
		"header value":           `{"headers":{"a":"1\r\nb: 2"}}` + end,
		"cookie":                 `{"cookies":["a\n"]}` + end,
		"prelude without bounds": `{"headers":{"a":"` + strings.Repeat("a", maxPrelude) + `"}}` + end,
		"prelude that grows":     `{"headers":{"a":"` + strings.Repeat("\xff", maxPrelude/2) + `"}}` + end,
		"cookies that grow":      `{"cookies":[""` + strings.Repeat(`,""`, maxPrelude/6) + `]}` + end,
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, 1, func(s *harness) {
				p := s.invoke("a", "1")
				s.next()
				s.want(s.post("a", "response", text, "Content-Type", httpResponse), 202, "OK")
				s.wantError(p.result(), adapter.ErrBadAnswer)
				if p.w.heads != 0 {
					s.Error("a head was written")
				}
			})
		})
	}
}
