package gateway_test

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptrace"
	"net/textproto"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/windlass-dev/windlass/api/v1alpha1"
	"github.com/windlass-dev/windlass/internal/callwire"
	"github.com/windlass-dev/windlass/pkg/gateway"
	"github.com/windlass-dev/windlass/pkg/invocation"
	"github.com/windlass-dev/windlass/pkg/rollout"
)

func TestInterimAnswersReachTheClient(t *testing.T) {
	eachProtocol(t, func(w *harness, client *http.Client) {
		var got []string
		trace := &httptrace.ClientTrace{Got1xxResponse: func(code int, header textproto.MIMEHeader) error {
			if code != 103 {
				t.Errorf("an interim answer %d", code)
			}
			got = append(got, header.Get("Link"))
			return nil
		}}
		r := w.get("/function/hello/")
		answers := w.callWith(client, r.WithContext(httptrace.WithClientTrace(r.Context(), trace)))
		i := w.take()
		i.sendHead(callwire.Head{Status: 103, Header: fields([]string{"Link", "</a>"})})
		i.sendHead(callwire.Head{Status: 103, Header: fields([]string{"Link", strings.Repeat("x", 5<<10)})}) // is too large
		i.sendHead(callwire.Head{Status: 103, Header: fields([]string{"Link", "</b>"})})
		i.whole(200, "done", "X-Mine", "a")
		a := wrote(w.T, answers, 200, invocation.ExecutedYes)
		if !slices.Equal(got, []string{"</a>", "</b>"}) || a.header.Get("Link") != "" || a.header.Get("X-Mine") != "a" {
			w.Errorf("got the hints %q, then %v", got, a.header)
		}
	})
}

// HTTP/1.0 knows no interim answers.
func TestAClientOfHTTP10GetsNoInterimAnswer(t *testing.T) {
	w := newHarness(t)
	c := w.dial()
	c.send("GET /function/hello/ HTTP/1.0\r\nHost: h\r\n\r\n")
	i := w.take()
	i.sendHead(callwire.Head{Status: 103})
	i.whole(200, "done")
	if a := c.answer(); a.status != 200 || a.body != "done" {
		t.Errorf("answered %+v", a)
	}
}

// An instance that sends interim answers without end costs no memory.
func TestInterimAnswersWithoutEndAreDropped(t *testing.T) {
	w := newHarness(t)
	answers := w.call(w.get("/function/hello/"))
	i := w.take()
	for range 10_000 {
		i.sendHead(callwire.Head{Status: 102, Header: fields([]string{"X", strings.Repeat("x", 100)})})
	}
	i.whole(200, "done")
	// Go's client gives up after five of them.
	if a := receive(t, answers, "the answer"); a.err == nil && a.body != "done" {
		t.Errorf("answered %+v", a)
	}
	i.ended()
}

func TestTheFunctionSaysWhenTheClientMaySendItsBody(t *testing.T) {
	w := newHarness(t)
	c := w.dial()
	c.send("POST /function/hello/ HTTP/1.1\r\nHost: h\r\nExpect: 100-continue\r\nContent-Length: 100000\r\n\r\n")
	i := w.take()
	if !i.granted.ExpectContinue {
		t.Error("the function does not learn that the client waits")
	}
	i.sendHead(callwire.Head{Status: 100})
	if line, err := c.r.ReadString('\n'); err != nil || line != "HTTP/1.1 100 Continue\r\n" {
		t.Fatalf("the client heard %q, %v", line, err)
	}
	_, _ = c.r.ReadString('\n')
	c.send(strings.Repeat("x", 100_000))
	if u := i.read(bodyEnded); !u.whole || u.body.Len() != 100_000 {
		t.Errorf("the function got %d bytes, whole %t", u.body.Len(), u.whole)
	}
	i.whole(200, "done")
	if a := c.answer(); a.status != 200 || a.body != "done" {
		t.Errorf("answered %+v", a)
	}
}

// A function that answers at once never sees the body, and the client never sends it.
func TestAClientThatWaitsToSendItsBodyMayBeRefused(t *testing.T) {
	w := newHarness(t)
	c := w.dial()
	c.send("POST /function/hello/ HTTP/1.1\r\nHost: h\r\nExpect: 100-continue\r\nContent-Length: 100000\r\n\r\n")
	i := w.take()
	i.whole(413, "too large")
	if a := c.answer(); a.status != 413 || a.body != "too large" {
		t.Errorf("answered %+v", a)
	}
	if u := i.ended(); u.body.Len() > 0 {
		t.Errorf("the function got %d bytes", u.body.Len())
	}
	c.closed()
}

// A function that does not know of it gets the body after a moment.
func TestABodyComesWithoutTheFunctionAskingForIt(t *testing.T) {
	t.Parallel()
	w := newHarness(t)
	c := w.dial()
	c.send("POST /function/hello/ HTTP/1.1\r\nHost: h\r\nExpect: 100-continue\r\nTransfer-Encoding: chunked\r\n\r\n")
	i := w.take()
	if line, err := c.r.ReadString('\n'); err != nil || line != "HTTP/1.1 100 Continue\r\n" {
		t.Fatalf("the client heard %q, %v", line, err)
	}
	_, _ = c.r.ReadString('\n')
	c.send("4\r\nbody\r\n0\r\n\r\n")
	if u := i.read(bodyEnded); u.body.String() != "body" || !u.whole {
		t.Errorf("the function got %q", u.body.String())
	}
	i.whole(200, "done")
	if a := c.answer(); a.body != "done" {
		t.Errorf("answered %+v", a)
	}
}

func TestTrailersPassBothWays(t *testing.T) {
	eachProtocol(t, func(w *harness, client *http.Client) {
		r := w.request("POST", "/function/hello/", chunked(strings.NewReader("question")))
		r.Trailer = http.Header{"X-Sum": {"1"}, "X-More": {"2"}}
		responses := make(chan *http.Response, 1)
		go func() {
			resp, err := client.Do(r)
			if err != nil {
				w.Error(err)
			}
			responses <- resp
		}()
		i := w.take()
		if !slices.Equal(i.granted.Trailer, []string{"X-More", "X-Sum"}) {
			w.Errorf("the client announced %q", i.granted.Trailer)
		}
		u := i.read(bodyEnded)
		slices.SortFunc(u.trailer, func(a, b callwire.Field) int { return strings.Compare(a.Name, b.Name) })
		if !slices.Equal(u.trailer, fields([]string{"X-More", "2", "X-Sum", "1"})) || u.body.String() != "question" {
			w.Errorf("the function got %q with %v", u.body.String(), u.trailer)
		}
		i.sendHead(callwire.Head{Status: 200, ContentLength: -1, Trailer: []string{"X-Announced", "Content-Length"}})
		i.body("answer")
		i.sendEnd(callwire.End{Trailer: fields([]string{"X-Announced", "3", "X-New", "4", "Transfer-Encoding", "x", "Windlass-Executed", "no"})})
		resp := receive(w.T, responses, "the answer")
		defer resp.Body.Close()
		if body, err := io.ReadAll(resp.Body); string(body) != "answer" || err != nil {
			w.Errorf("answered %q, %v", body, err)
		}
		if got := resp.Trailer; got.Get("X-Announced") != "3" || got.Get("X-New") != "4" || len(got) != 2 {
			w.Errorf("the client got the trailers %v", got)
		}
	})
}

// They wait for a client that may be slow, beside those of all other calls.
func TestTrailersOfAnAnswerAreBoundedAsItsHeadIs(t *testing.T) {
	const most = 64<<10 - len("X-Sum") - 32 // for the value
	w := newHarness(t)
	for size, came := range map[int]int{most: most, most + 1: 0, 1 << 20: 0} {
		i, read := w.streamed(w.http2) // Go's client of HTTP/1.1 takes 4 KiB
		i.sendEnd(callwire.End{Trailer: fields([]string{"X-Sum", strings.Repeat("x", size)})})
		got := receive(t, read, "the answer")
		if (got.err == nil) != (came > 0) || len(got.trailer.Get("X-Sum")) != came {
			t.Errorf("of %d bytes %d came, %v", size, len(got.trailer.Get("X-Sum")), got.err)
		}
	}
}

// readAnswer is what a client has read of an answer.
type readAnswer struct {
	trailer http.Header
	err     error
}

// streamed is a call whose answer has begun, and what its client reads.
func (w *harness) streamed(client *http.Client) (*instance, chan readAnswer) {
	read := make(chan readAnswer, 1)
	go func() {
		resp, err := client.Do(w.get("/function/hello/"))
		if err != nil {
			read <- readAnswer{err: err}
			return
		}
		defer resp.Body.Close()
		_, err = io.ReadAll(resp.Body)
		read <- readAnswer{resp.Trailer, err}
	}()
	i := w.take()
	i.head(200)
	i.body("answer")
	return i, read
}

// An instance could not announce them to its function, and would leave.
func TestTrailersThatNoRequestMayHaveReachNoInstance(t *testing.T) {
	w := newHarness(t)
	c := w.dial()
	c.send("POST /function/hello/ HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n" +
		"Trailer: Authorization, Content-Type, If-Match, a b, X-Ok, Windlass-Depth\r\n\r\n" +
		"2\r\nhi\r\n0\r\nAuthorization: secret\r\nIf-Match: *\r\nX-Ok: 1\r\n\r\n")
	i := w.take()
	if !slices.Equal(i.granted.Trailer, []string{"X-Ok"}) {
		t.Errorf("announced were %q", i.granted.Trailer)
	}
	if u := i.read(bodyEnded); !u.whole || u.body.String() != "hi" {
		t.Errorf("the instance got %+v", u)
	}
	i.whole(200, "")
	if a := c.answer(); a.status != 200 {
		t.Errorf("answered %+v", a)
	}
}

// Some servers take trailers for headers, and trust those that their proxy sends.
func TestTrailersOfProxiesComeFromTrustedProxiesOnly(t *testing.T) {
	sent := []string{"X-Auth-Request-User", "1", "X-Forwarded-For", "2", "X-Sum", "3"}
	for name, tt := range map[string]struct {
		trusted gateway.Proxies
		come    []string
	}{"from anybody": {nil, sent[4:]}, "from a trusted proxy": {gateway.Loopback(), sent}} {
		t.Run(name, func(t *testing.T) {
			w := newHarness(t, func(c *gateway.Config) { c.TrustedProxies = tt.trusted })
			c := w.dial()
			c.send("POST /function/hello/ HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\nConnection: X-Hop\r\n" +
				"Trailer: X-Sum, X-Hop, X-Forwarded-For, X-Auth-Request-User\r\n\r\n" +
				"2\r\nhi\r\n0\r\nX-Auth-Request-User: 1\r\nX-Forwarded-For: 2\r\nX-Sum: 3\r\nX-Hop: 4\r\nX-Unannounced: 5\r\n\r\n")
			i := w.take()
			u := i.read(bodyEnded)
			if want := fields(tt.come); !slices.Equal(u.trailer, want) || len(i.granted.Trailer) != len(want) {
				t.Errorf("announced were %q, and %v came", i.granted.Trailer, u.trailer)
			}
			i.whole(200, "")
			if a := c.answer(); a.status != 200 {
				t.Errorf("answered %+v", a)
			}
		})
	}
}

// echo is a client that has switched to the protocol "echo".
func (w *harness) echo() (*raw, *instance) {
	w.Helper()
	w.route(part{"", 7, 100})
	c := w.dial()
	c.send("GET /function/hello/chat HTTP/1.1\r\nHost: h\r\nConnection: keep-alive, Upgrade\r\nUpgrade: echo, other\r\nSec-WebSocket-Key: k\r\n\r\n")
	i := w.take()
	if i.granted.Upgrade != "echo, other" {
		w.Errorf("the function was asked for %q", i.granted.Upgrade)
	}
	i.sendHead(callwire.Head{Status: 101, Upgrade: "echo", ContentLength: -1, Header: fields([]string{"Sec-Websocket-Accept", "a"}), Exec: 3 * time.Millisecond})
	resp, err := http.ReadResponse(c.r, &http.Request{Method: "GET"})
	if err != nil {
		w.Fatal(err)
	}
	h := resp.Header
	if resp.StatusCode != 101 || h.Get("Upgrade") != "echo" || h.Get("Connection") != "Upgrade" || h.Get("Sec-Websocket-Accept") != "a" || h.Get("Windlass-Executed") != "yes" {
		w.Fatalf("the client heard %d, %v", resp.StatusCode, h)
	}
	if timing, known := invocation.ParseTiming(h[invocation.HeaderTiming]); !known || timing.Function != 3*time.Millisecond || h.Get(invocation.HeaderRevision) != "hello-00007" {
		w.Errorf("the client heard %v of the call", h)
	}
	return c, i
}

// says sends and checks what comes back by the function.
func (r *raw) says(i *instance, what string) {
	r.t.Helper()
	r.send(what)
	u := i.read(func(u *upload) bool { return u.body.Len() >= len(what) })
	i.body(u.body.String())
	got := make([]byte, len(what))
	if _, err := io.ReadFull(r.r, got); err != nil || string(got) != what {
		r.t.Fatalf("heard %d bytes, %v", len(got), err)
	}
}

func TestAClientAndAFunctionMaySwitchToAnotherProtocol(t *testing.T) {
	for name, end := range map[string]func(w *harness, c *raw, i *instance){
		"the function ends": func(_ *harness, c *raw, i *instance) {
			i.body("bye")
			i.end()
			if rest, err := io.ReadAll(c.r); string(rest) != "bye" || err != nil {
				c.t.Errorf("heard %q, %v", rest, err)
			}
		},
		"the client ends its half": func(_ *harness, c *raw, i *instance) {
			_ = c.conn.(*net.TCPConn).CloseWrite()
			if u := i.read(bodyEnded); !u.whole {
				c.t.Error("the function saw it broken off")
			}
			i.body("bye")
			i.end()
			if rest, err := io.ReadAll(c.r); string(rest) != "bye" || err != nil {
				c.t.Errorf("heard %q, %v", rest, err)
			}
		},
		"the client is gone": func(_ *harness, c *raw, i *instance) {
			_ = c.conn.(*net.TCPConn).SetLinger(0)
			c.conn.Close()
			if u := i.read(bodyEnded); !u.aborted {
				c.t.Error("the function saw a good end")
			}
			i.end()
		},
		"the function fails": func(_ *harness, c *raw, i *instance) {
			i.fail(callwire.FailureFunctionLost, "")
			c.closed()
		},
		"the instance is gone": func(_ *harness, c *raw, i *instance) {
			i.die()
			c.closed()
		},
		"the gateway drains": func(w *harness, c *raw, i *instance) {
			w.gateway.Drain()
			c.says(i, "still here")
			i.end()
			c.closed()
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newHarness(t)
			c, i := w.echo()
			c.says(i, "hello")
			c.says(i, strings.Repeat("a large message ", 20_000))
			end(w, c, i)
			until(t, "nothing is left", func() bool { return w.gateway.Entries() == 0 && w.gateway.Held() == 0 })
		})
	}
}

// A client that has not heard yet that its function has ended goes on sending. A connection that is
// closed on unread bytes is reset, and its client may lose what it has not read.
func TestTheLastWordsOfAFunctionReachAClientThatStillSends(t *testing.T) {
	w := newHarness(t)
	c, i := w.echo()
	_ = c.conn.(*net.TCPConn).SetReadBuffer(4 << 10)
	last := strings.Repeat("x", 60<<10)
	i.body(last)
	i.end()
	_, _ = io.WriteString(c.conn, strings.Repeat("y", 4<<20))
	if rest, err := io.ReadAll(c.r); string(rest) != last || err != nil {
		t.Errorf("heard %d bytes of %d, %v", len(rest), len(last), err)
	}
}

// What a client of such a protocol sends behind its request belongs to the function.
func TestWhatFollowsASwitchAtOnceIsTheFunctions(t *testing.T) {
	w := newHarness(t)
	c := w.dial()
	c.send("GET /function/hello/chat HTTP/1.1\r\nHost: h\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\nGET /function/hello/smuggled HTTP/1.1\r\nHost: h\r\n\r\n")
	i := w.take()
	i.sendHead(callwire.Head{Status: 101, Upgrade: "echo", ContentLength: -1})
	u := i.read(func(u *upload) bool { return strings.HasSuffix(u.body.String(), "\r\n\r\n") })
	if got := u.body.String(); !strings.HasPrefix(got, "GET /function/hello/smuggled") {
		t.Errorf("the function got %q", got)
	}
	i.end()
}

func TestAFunctionMayAnswerInsteadOfSwitching(t *testing.T) {
	w := newHarness(t)
	c := w.dial()
	c.send("GET /function/hello/chat HTTP/1.1\r\nHost: h\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\n")
	w.take().whole(400, "no such room")
	if a := c.answer(); a.status != 400 || a.body != "no such room" {
		t.Errorf("answered %+v", a)
	}
	// The connection goes on.
	c.send("GET /function/hello/chat HTTP/1.1\r\nHost: h\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\n")
	i := w.take()
	i.head(401)
	i.end()
	if a := c.answer(); a.status != 401 || a.err != nil {
		t.Errorf("answered %+v", a)
	}
}

func TestAFunctionThatSwitchesUnaskedHasNoGoodAnswer(t *testing.T) {
	eachProtocol(t, func(w *harness, client *http.Client) {
		answers := w.callWith(client, w.get("/function/hello/"))
		i := w.take()
		i.sendHead(callwire.Head{Status: 101, Upgrade: "echo", ContentLength: -1})
		problem(w.T, wrote(w.T, answers, 502, invocation.ExecutedMaybe), "BadAnswer")
		i.fail(callwire.FailureFunctionLost, "")
		i.ended()
	})
}

// slowReader gives a body in small pieces, each when it is asked for.
type slowReader struct{ left int }

func (s *slowReader) Read(p []byte) (int, error) {
	if s.left == 0 {
		return 0, io.EOF
	}
	n := min(len(p), s.left, 4<<10)
	s.left -= n
	return n, nil
}

// Neither a slow instance nor a slow client makes the gateway hold more than a window of a body.
func TestLargeBodiesPassBothWaysInBoundedMemory(t *testing.T) {
	const size = 1 << 20
	eachProtocol(t, func(w *harness, client *http.Client) {
		responses := make(chan *http.Response, 1)
		go func() {
			resp, err := client.Do(w.request("POST", "/function/hello/", &slowReader{size}))
			if err != nil {
				w.Error(err)
			}
			responses <- resp
		}()
		i := w.take()
		// The instance reads nothing: what is on its way stays within the window.
		held := 0
		for held < callwire.InitialWindow {
			f, err := i.next()
			if err != nil || f.Kind != callwire.KindBody {
				w.Fatalf("a frame of kind %d, %v", f.Kind, err)
			}
			held += len(f.Payload)
		}
		if i.agent.ping(); held != callwire.InitialWindow || len(i.frames) > 0 {
			w.Errorf("%d bytes and %d more frames came to an instance that reads nothing", held, len(i.frames))
		}
		i.agent.write(func(b []byte) []byte {
			return callwire.AppendCount(b, callwire.KindWindow, i.number, callwire.InitialWindow)
		})
		if u := i.read(bodyEnded); u.body.Len() != size-held || !u.whole {
			w.Errorf("the function got %d bytes more, whole %t", u.body.Len(), u.whole)
		}
		// The client reads nothing of the answer for a while.
		i.head(200)
		part, sent := bytes.Repeat([]byte("x"), size), make(chan error, 1)
		go func() {
			_, err := i.out.Write(part)
			i.sendEnd(callwire.End{})
			sent <- err
		}()
		resp := receive(w.T, responses, "the head")
		defer resp.Body.Close()
		body, err := io.ReadAll(bufio.NewReaderSize(resp.Body, 16))
		if err != nil || !bytes.Equal(body, part) {
			w.Errorf("answered %d bytes, %v", len(body), err)
		}
		if err := receive(w.T, sent, "the end of the sending"); err != nil {
			w.Error(err)
		}
	})
}

// An instance that sends more than the client has read, and the window allows, is cut off. Until
// then the gateway holds a window of it.
func TestAnInstanceThatExceedsTheWindowLosesItsConnection(t *testing.T) {
	eachProtocol(t, func(w *harness, client *http.Client) {
		resp := make(chan *http.Response, 1)
		go func() {
			r, err := client.Do(w.get("/function/hello/"))
			if err != nil {
				w.Error(err)
			}
			resp <- r
		}()
		i := w.take()
		i.head(200)
		r := receive(w.T, resp, "the head")
		defer r.Body.Close()
		part := make([]byte, callwire.MaxBody)
		for n := 0; ; n++ {
			select {
			case <-i.agent.gone:
				if _, err := io.Copy(io.Discard, r.Body); err == nil {
					w.Error("the answer looks whole")
				}
				return
			default:
				if n > 10_000 {
					w.Fatal("the gateway holds all of it")
				}
				i.agent.write(func(b []byte) []byte { return callwire.AppendBody(b, i.number, part) })
			}
		}
	})
}

// A client that leaves in the middle of an answer lets the instance go on for a while. Then the
// instance is asked to stop, and keeps its connection.
func TestAnAnswerWithoutAClientEndsAfterAWhile(t *testing.T) {
	t.Parallel()
	eachProtocol(t, func(w *harness, client *http.Client) {
		ctx, cancel := context.WithCancel(w.Context())
		answers := w.callWith(client, w.get("/function/hello/").WithContext(ctx))
		i := w.take()
		i.head(200)
		i.body("part")
		cancel()
		receive(w.T, answers, "the end of the call")
		until(w.T, "the gateway has noticed", func() bool { return w.metric("windlass_gateway_invocations_total") == 1 })
		i.body("more")
		if u := i.ended(); u.cancelled {
			w.Error("cancelled at once")
		}
		left := make(chan struct{})
		go func() {
			defer close(left)
			for _, err := i.out.Write(make([]byte, 1000)); err == nil; _, err = i.out.Write(make([]byte, 1000)) {
			}
		}()
		i.cancelled()
		i.out.End(errors.New("the function has stopped"))
		receive(w.T, left, "the end of the sending")
		i.sendEnd(callwire.End{Failure: callwire.FailureFunctionLost, Keeps: true})
		i.ended()
		// The place is good for the next call.
		next := w.callWith(client, w.get("/function/hello/next"))
		i.agent.byLoan().is("next").keep(200, "")
		wrote(w.T, next, 200, invocation.ExecutedYes)
	})
}

// A call by a loan is cancelled with its client, if the function wants that.
func TestACallByALoanIsCancelledWithItsClient(t *testing.T) {
	w := newHarness(t)
	fn := w.put("default", "hello", time.Minute).DeepCopy()
	fn.Spec.Calls.OnClientDisconnect = v1alpha1.OnClientDisconnectCancel
	w.catalog.Put(rollout.Alone(fn))
	a := w.lender(firstCID)
	ctx, hangUp := context.WithCancel(t.Context())
	answers := w.call(w.get("/function/hello/").WithContext(ctx))
	i := a.byLoan()
	hangUp()
	receive(t, answers, "the end of the call")
	i.cancelled()
	i.sendEnd(callwire.End{Failure: callwire.FailureFunctionLost, Keeps: true})
	next := w.call(w.get("/function/hello/next"))
	a.byLoan().is("next").keep(200, "")
	wrote(t, next, 200, invocation.ExecutedYes)
}
