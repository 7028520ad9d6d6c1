package gateway_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/windlass-dev/windlass/internal/callwire"
	"github.com/windlass-dev/windlass/pkg/gateway"
	"github.com/windlass-dev/windlass/pkg/invocation"
)

const small = 64 << 10 // what rides in the grant

// chunked hides the length of a body.
func chunked(r io.Reader) io.Reader { return struct{ io.Reader }{r} }

func TestASmallBodyIsInlinedInTheGrant(t *testing.T) {
	eachProtocol(t, func(w *harness, client *http.Client) {
		for name, size := range map[string]int{"empty": 0, "one byte": 1, "the largest": small} {
			w.Run(name, func(t *testing.T) {
				w := w.in(t)
				body := bytes.Repeat([]byte("b"), size)
				answers := w.callWith(client, w.request("POST", "/function/hello/", bytes.NewReader(body)))
				i := w.take()
				if g := i.granted; !g.Whole || !bytes.Equal(g.Body, body) || g.ContentLength != int64(size) {
					t.Errorf("whole %v, length %d, %d bytes", g.Whole, g.ContentLength, len(g.Body))
				}
				i.whole(200, "")
				wrote(t, answers, 200, invocation.ExecutedYes)
			})
		}
	})
}

func TestALargerBodyIsStreamed(t *testing.T) {
	eachProtocol(t, func(w *harness, client *http.Client) {
		for _, tt := range []struct {
			name   string
			size   int
			length int64
			hide   bool
		}{
			{"of known length", small + 1, small + 1, false},
			{"larger than all buffers", 3 << 20, 3 << 20, false},
			{"of unknown length", 3 << 20, -1, true},
			{"of unknown length, and empty", 0, -1, true},
		} {
			w.Run(tt.name, func(t *testing.T) {
				w := w.in(t)
				body := bytes.Repeat([]byte("0123456789abcde\n"), tt.size/16+1)[:tt.size]
				var r io.Reader = bytes.NewReader(body)
				if tt.hide {
					r = chunked(r)
				}
				answers := w.callWith(client, w.request("POST", "/function/hello/", r))
				i := w.take()
				if i.granted.Whole || i.granted.ContentLength != tt.length {
					t.Errorf("granted whole %v, length %d", i.granted.Whole, i.granted.ContentLength)
				}
				if u := i.read(bodyEnded); !u.whole || !bytes.Equal(u.body.Bytes(), body) {
					t.Errorf("got %d bytes, whole %v", u.body.Len(), u.whole)
				}
				i.whole(200, "")
				wrote(t, answers, 200, invocation.ExecutedYes)
				i.ended()
			})
		}
	})
}

// Question and answer can alternate within one call.
func TestBothBodiesCanBeStreamedAtOnce(t *testing.T) {
	eachProtocol(t, func(w *harness, client *http.Client) {
		pr, pw := io.Pipe()
		responses := make(chan *http.Response, 1)
		go func() {
			resp, err := client.Do(w.request("POST", "/function/hello/", pr))
			if err != nil {
				w.Error(err)
			}
			responses <- resp
		}()
		i := w.take()
		i.head(200)
		resp := receive(w.T, responses, "the head")
		defer resp.Body.Close()
		for n := range 3 {
			question := fmt.Sprintf("question %d", n)
			go func() { _, _ = io.WriteString(pw, question) }()
			u := i.read(func(u *upload) bool { return u.body.Len() == len(question) })
			i.body(u.body.String())
			answer := make([]byte, len(question))
			if _, err := io.ReadFull(resp.Body, answer); err != nil || string(answer) != question {
				w.Fatalf("read %q, %v", answer, err)
			}
		}
		pw.Close()
		if u := i.read(bodyEnded); !u.whole {
			w.Error("the body was cut")
		}
		i.end()
		if rest, err := io.ReadAll(resp.Body); len(rest) > 0 || err != nil {
			w.Errorf("read %q, %v at the end", rest, err)
		}
	})
}

func TestAnUploadThatIsBrokenOffNeverLooksWhole(t *testing.T) {
	eachProtocol(t, func(w *harness, client *http.Client) {
		for name, length := range map[string]int64{"of known length": 1 << 20, "of unknown length": -1} {
			w.Run(name, func(t *testing.T) {
				w := w.in(t)
				pr, pw := io.Pipe()
				r := w.request("POST", "/function/hello/", pr)
				r.ContentLength = length
				answers := w.callWith(client, r)
				_, _ = io.WriteString(pw, "half")
				i := w.take()
				i.read(func(u *upload) bool { return u.body.Len() == len("half") })
				pw.CloseWithError(errors.New("broken off"))
				if u := i.read(bodyEnded); !u.aborted {
					t.Errorf("the instance saw the body end with %+v", u)
				}
				if a := receive(t, answers, "the end of the call"); a.err == nil {
					t.Errorf("answered %d", a.status)
				}
				i.fail(callwire.FailureFunctionLost, "")
				i.ended()
			})
		}
	})
}

func TestATooLargeBodyIsRefused(t *testing.T) {
	eachProtocol(t, func(w *harness, client *http.Client) {
		// At the edge, if the client says so.
		r := w.request("POST", "/function/hello/", bytes.NewReader(make([]byte, 100_001)))
		problem(w.T, wrote(w.T, w.callWith(client, r), 413, invocation.ExecutedNo), "BodyTooLarge")
		// And on the way, if it does not: the instance has begun then.
		r = w.request("POST", "/function/hello/", chunked(bytes.NewReader(make([]byte, 100_001))))
		answers := w.callWith(client, r)
		i := w.take()
		if u := i.read(bodyEnded); !u.aborted || u.body.Len() > 100_000 {
			w.Errorf("the instance got %d bytes and %+v", u.body.Len(), u)
		}
		problem(w.T, wrote(w.T, answers, 502, invocation.ExecutedMaybe), "RequestCut")
		i.fail(callwire.FailureFunctionLost, "")
		i.ended()
		// What is just small enough goes through.
		answers = w.callWith(client, w.request("POST", "/function/hello/", chunked(bytes.NewReader(make([]byte, 100_000)))))
		i = w.take()
		if u := i.read(bodyEnded); !u.whole || u.body.Len() != 100_000 {
			w.Errorf("the instance got %d bytes and %+v", u.body.Len(), u)
		}
		i.whole(200, "")
		wrote(w.T, answers, 200, invocation.ExecutedYes)
	}, func(c *gateway.Config) { c.MaxBody = 100_000 })
}

// A function may answer without having read its request, as it does when it
// refuses it. The answer must not wait until somebody has.
func TestAnAnswerDoesNotWaitForAnUnreadBody(t *testing.T) {
	t.Parallel()
	eachProtocol(t, func(w *harness, client *http.Client) {
		for name, answer := range map[string]func(i *instance){
			"whole":    func(i *instance) { i.whole(401, "who are you?") },
			"streamed": func(i *instance) { i.head(401); i.body("who are you?"); i.end() },
			"failed":   func(i *instance) { i.whole(700, "") },
		} {
			w.Run(name, func(t *testing.T) {
				w := w.in(t)
				upload := &endless{stop: make(chan struct{})}
				defer close(upload.stop)
				responses := make(chan *http.Response, 1)
				go func() {
					resp, err := client.Do(w.request("POST", "/function/hello/", upload))
					if err != nil {
						t.Error(err)
					}
					responses <- resp
				}()
				i := w.take()
				answer(i)
				resp := receive(t, responses, "the answer")
				if resp == nil {
					return
				}
				if _, err := io.ReadAll(resp.Body); err != nil {
					t.Errorf("the answer breaks off: %v", err)
				}
				resp.Body.Close()
				i.ended()
			})
		}
	}, func(c *gateway.Config) { c.MaxBody = 1 << 40 })
}

// endless is a body that fills all buffers, and then ends when it is stopped.
type endless struct {
	sent int
	stop chan struct{}
}

func (e *endless) Read(p []byte) (int, error) {
	if e.sent > 16<<20 {
		<-e.stop
		return 0, io.EOF
	}
	e.sent += len(p)
	return len(p), nil
}

// A body that was answered before it was read must not be taken for the next
// request on the connection.
func TestTheRestOfABodyIsNoRequest(t *testing.T) {
	const next = "GET /function/hello/smuggled HTTP/1.1\r\nHost: h\r\n\r\n"
	for name, tt := range map[string]struct{ head, first string }{
		"of known length":   {fmt.Sprintf("Content-Length: %d", small+len(next)), strings.Repeat("x", small)},
		"of unknown length": {"Transfer-Encoding: chunked", "5\r\nfirst\r\n"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newHarness(t)
			c := w.dial()
			c.send("POST /function/hello/ HTTP/1.1\r\nHost: h\r\n" + tt.head + "\r\n\r\n" + tt.first)
			first := w.scheduler.ticket()
			i := w.claim(first)
			i.whole(200, "enough")
			if a := c.answer(); a.err != nil || a.body != "enough" {
				t.Fatalf("answered %+v", a)
			}
			_, _ = io.WriteString(c.conn, next)
			c.closed()
			// The first call itself may have been offered twice, for its ticket
			// was there before the stream to the scheduler was.
			for len(w.scheduler.offers) > 0 {
				if again := w.scheduler.offered(); !bytes.Equal(again.GetInvocationId(), first.GetInvocationId()) {
					t.Errorf("the body became a call: %v", again)
				}
			}
		})
	}
}

// A connection goes on after a body that was read to its end.
func TestTheConnectionIsUsedAgainAfterAStreamedBody(t *testing.T) {
	w := newHarness(t)
	c := w.dial()
	for range 50 {
		c.send("POST /function/hello/ HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nfirst\r\n0\r\n\r\n")
		i := w.take()
		if u := i.read(bodyEnded); !u.whole || u.body.String() != "first" {
			t.Fatalf("the instance got %+v", u)
		}
		i.whole(200, "")
		if a := c.answer(); a.status != 200 || a.header.Get(invocation.HeaderExecuted) != "yes" {
			t.Fatalf("answered %+v", a)
		}
	}
}

// Nobody can read a body twice: a call is not offered again if more of its body was sent
// than is kept.
func TestAReleasedCallWithAStreamedBodyIsAnswered(t *testing.T) {
	eachProtocol(t, func(w *harness, client *http.Client) {
		answers := w.callWith(client, w.request("POST", "/function/hello/", chunked(strings.NewReader(strings.Repeat("x", 1<<20)))))
		ticket := w.scheduler.ticket()
		i := w.claim(ticket)
		i.read(func(u *upload) bool { return u.body.Len() > 1<<19 })
		i.release("the function ended")
		a := wrote(w.T, answers, 503, invocation.ExecutedNo)
		problem(w.T, a, "InstanceLeft")
		if a.header.Get("Retry-After") == "" {
			w.Error("no Retry-After")
		}
		i.ended()
		if got := w.claim(ticket).refused; got != callwire.RefusedNotWaiting {
			w.Errorf("it could be claimed again: %v", got)
		}
	})
}

// An instance that ends before it began costs the caller nothing, however its body comes.
func TestL4AReleasedCallIsGivenToAnotherInstanceWithAllOfItsBody(t *testing.T) {
	eachProtocol(t, func(w *harness, client *http.Client) {
		body := strings.Repeat("0123456789abcde\n", 90<<10/16)
		for name, known := range map[string]bool{"of known length": true, "of unknown length": false} {
			for _, read := range []int{0, 1, len(body)} {
				w.Run(fmt.Sprintf("%s, %d read", name, read), func(t *testing.T) {
					w := w.in(t)
					r := w.request("POST", "/function/hello/", strings.NewReader(body))
					if !known {
						r = w.request("POST", "/function/hello/", chunked(strings.NewReader(body)))
					}
					answers := w.callWith(client, r)
					i := w.take()
					i.read(func(u *upload) bool { return u.body.Len() >= read })
					i.release("the function ended")
					i = w.take()
					if i.granted.Attempt != 2 {
						t.Errorf("granted %v", i.granted)
					}
					if u := i.read(bodyEnded); !u.whole || u.body.String() != body {
						t.Errorf("the second instance got %d bytes, whole %v", u.body.Len(), u.whole)
					}
					i.whole(200, "")
					wrote(t, answers, 200, invocation.ExecutedYes)
					i.ended()
				})
			}
		}
	})
}

// The first instance leaves while the client has sent nothing: what comes then is read
// for it, and belongs to the second.
func TestL4WhatIsReadForAnInstanceThatLeftGoesToTheNext(t *testing.T) {
	eachProtocol(t, func(w *harness, client *http.Client) {
		pr, pw := io.Pipe()
		answers := w.callWith(client, w.request("POST", "/function/hello/", pr))
		for range 3 {
			i := w.take()
			i.release("the function ended")
			i.ended()
		}
		i := w.take()
		_, _ = io.WriteString(pw, "first")
		u := i.read(func(u *upload) bool { return u.body.Len() == len("first") })
		_, _ = io.WriteString(pw, "second")
		pw.Close()
		if rest := i.read(bodyEnded); u.body.String() != "first" || !rest.whole || rest.body.String() != "second" {
			w.Errorf("it got %q, %+v", u.body.String(), rest)
		}
		i.whole(200, "")
		wrote(w.T, answers, 200, invocation.ExecutedYes)
	})
}

// The client waits for the answer to what it has sent, so the reading for the first instance goes on.
func TestL4WhatWasReadBeforeAnInstanceLeftGoesToTheNextAtOnce(t *testing.T) {
	eachProtocol(t, func(w *harness, client *http.Client) {
		pr, pw := io.Pipe()
		answers := w.callWith(client, w.request("POST", "/function/hello/", pr))
		i := w.take()
		_, _ = io.WriteString(pw, "first")
		i.read(func(u *upload) bool { return u.body.Len() == len("first") })
		i.release("the function ended")
		i.ended()
		i = w.take()
		if u := i.read(func(u *upload) bool { return u.body.Len() == len("first") || u.aborted }); u.body.String() != "first" {
			w.Errorf("it got %q, %+v", u.body.String(), u)
		}
		_, _ = io.WriteString(pw, "second")
		pw.Close()
		if rest := i.read(bodyEnded); !rest.whole || rest.body.String() != "second" {
			w.Errorf("behind it came %q, %+v", rest.body.String(), rest)
		}
		i.whole(200, "")
		wrote(w.T, answers, 200, invocation.ExecutedYes)
	}, gateway.LeaveGrace(grace))
}

func TestASmallBodyThatIsCutShortIsNoCall(t *testing.T) {
	w := newHarness(t)
	c := w.dial()
	c.send("POST /function/hello/ HTTP/1.1\r\nHost: h\r\nContent-Length: 10\r\n\r\nhalf")
	if err := c.conn.(interface{ CloseWrite() error }).CloseWrite(); err != nil {
		t.Fatal(err)
	}
	a := c.answer()
	problem(t, a, "BodyNotReadable")
	if a.status != 400 || a.header.Get(invocation.HeaderExecuted) != "no" || len(w.scheduler.offers) > 0 {
		t.Errorf("answered %+v", a)
	}
}

func TestASmallBodyThatDoesNotComeIsNotWaitedForForever(t *testing.T) {
	t.Parallel()
	w := newHarness(t, func(c *gateway.Config) { c.MaxQueueTime = 50 * time.Millisecond })
	c := w.dial()
	c.send("POST /function/hello/ HTTP/1.1\r\nHost: h\r\nContent-Length: 10\r\n\r\nhalf")
	a := c.answer()
	p := problem(t, a, "BodyTooSlow")
	if detail := p["detail"].(string); !strings.Contains(detail, "50ms") || strings.Contains(detail, "bytes a second") {
		t.Errorf("says %q", detail)
	}
	if a.status != 408 || a.header.Get(invocation.HeaderExecuted) != "no" {
		t.Errorf("answered %+v", a)
	}
	c.closed()
}

// Whether to send a body at all is asked before: "100 Continue" comes when
// somebody wants to read it.
func TestABodyIsNotAskedForInVain(t *testing.T) {
	w := newHarness(t)
	w.gateway.Drain()
	c := w.dial()
	c.send("POST /function/hello/ HTTP/1.1\r\nHost: h\r\nExpect: 100-continue\r\nContent-Length: 10\r\n\r\n")
	if a := c.answer(); a.status != 503 {
		t.Errorf("answered %+v", a)
	}
}

// The time that a client has to read an answer is over when the next call comes on its connection.
func TestTheTimeOfTheLastAnswerIsNotThatOfTheNext(t *testing.T) {
	w := newHarness(t)
	server := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		_ = http.NewResponseController(rw).SetWriteDeadline(time.Now().Add(-time.Second))
		w.gateway.ServeHTTP(rw, r)
	}))
	t.Cleanup(server.Close)
	w.url = server.URL
	t.Run("an answer", func(t *testing.T) {
		w := w.in(t)
		answers := w.call(w.get("/function/hello/"))
		w.take().whole(200, "done")
		wrote(t, answers, 200, invocation.ExecutedYes)
	})
	t.Run("a problem", func(t *testing.T) {
		w := w.in(t)
		wrote(t, w.call(w.get("/function/unknown/")), 404, invocation.ExecutedNo)
	})
	t.Run("100 Continue", func(t *testing.T) {
		c := w.in(t).dial()
		c.send("POST /function/hello/ HTTP/1.1\r\nHost: h\r\nExpect: 100-continue\r\nContent-Length: 4\r\n\r\n")
		if line, err := c.r.ReadString('\n'); err != nil || line != "HTTP/1.1 100 Continue\r\n" {
			t.Fatalf("the client heard %q, %v", line, err)
		}
		_, _ = c.r.ReadString('\n')
		c.send("body")
		w.in(t).take().whole(200, "done")
		if a := c.answer(); a.status != 200 || a.body != "done" {
			t.Errorf("answered %+v", a)
		}
	})
}

// A client that ends its side of the connection is gone as far as HTTP goes. If
// it does listen, it must not hear that all is well.
func TestAClientThatHalfClosesIsToldNothing(t *testing.T) {
	w := newHarness(t)
	c := w.dial()
	c.send("GET /function/hello/ HTTP/1.1\r\nHost: h\r\n\r\n")
	w.scheduler.ticket()
	if err := c.conn.(interface{ CloseWrite() error }).CloseWrite(); err != nil {
		t.Fatal(err)
	}
	c.closed()
}
