package gateway_test

import (
	"bytes"
	"errors"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"

	controlwire "github.com/windlass-dev/windlass/api/wire/control/v1alpha1"
	"github.com/windlass-dev/windlass/internal/callwire"
	"github.com/windlass-dev/windlass/pkg/gateway"
	"github.com/windlass-dev/windlass/pkg/invocation"
)

// noWindow opens a call on an HTTP/2 connection whose client never lets a byte of a
// body come, and otherwise has good manners.
func (w *harness) noWindow(path string) {
	w.Helper()
	conn, err := net.Dial("tcp", strings.TrimPrefix(w.url, "http://"))
	if err != nil {
		w.Fatal(err)
	}
	w.Cleanup(func() { conn.Close() })
	var block bytes.Buffer
	encoder := hpack.NewEncoder(&block)
	for _, f := range [][2]string{{":method", "GET"}, {":scheme", "http"}, {":authority", "h"}, {":path", path}} {
		_ = encoder.WriteField(hpack.HeaderField{Name: f[0], Value: f[1]})
	}
	framer := http2.NewFramer(conn, conn)
	_, err = io.WriteString(conn, http2.ClientPreface)
	err = errors.Join(err, framer.WriteSettings(http2.Setting{ID: http2.SettingInitialWindowSize, Val: 0}),
		framer.WriteHeaders(http2.HeadersFrameParam{StreamID: 1, BlockFragment: block.Bytes(), EndStream: true, EndHeaders: true}))
	if err != nil {
		w.Fatal(err)
	}
	go func() {
		for {
			frame, err := framer.ReadFrame()
			if err != nil {
				return
			}
			switch f := frame.(type) {
			case *http2.SettingsFrame:
				if !f.IsAck() {
					_ = framer.WriteSettingsAck()
				}
			case *http2.PingFrame:
				_ = framer.WritePing(true, f.Data)
			}
		}
	}()
}

// Refusals come by the one goroutine that reads what a scheduler says. However long
// the text of one and however little its client reads, it goes on to the next.
func TestH1AClientWithoutAWindowHoldsUpNoRefusalOfOthers(t *testing.T) {
	w := newHarness(t)
	long := strings.Repeat("a line of log\n", 1000)
	for range 3 {
		w.noWindow("/function/hello/")
		w.scheduler.refuse(&controlwire.Refusal{
			InvocationId: w.scheduler.ticket().GetInvocationId(), Reason: controlwire.Refusal_REASON_CANNOT_START, Detail: long,
		})
		answers := w.call(w.get("/function/hello/"))
		w.scheduler.refuse(&controlwire.Refusal{InvocationId: w.scheduler.ticket().GetInvocationId(), Reason: controlwire.Refusal_REASON_QUEUE_FULL})
		wrote(t, answers, 429, invocation.ExecutedNo)
	}
}

// The answer to a body over the limit comes while it is being sent. It must not be
// lost with the connection.
func TestA6AClientThatIsStillSendingReadsWhyItIsRefused(t *testing.T) {
	const most = 1 << 20
	for name, status := range map[string]int{"of known length": 413, "of unknown length": 502} {
		t.Run(name, func(t *testing.T) {
			w := newHarness(t, func(c *gateway.Config) { c.MaxBody = most })
			r, hide := w.dial(), status == 502
			head := "Content-Length: " + strconv.Itoa(16*most)
			if hide {
				head = "Transfer-Encoding: chunked"
			}
			r.send("POST /function/hello/ HTTP/1.1\r\nHost: h\r\n" + head + "\r\n\r\n")
			if hide {
				r.send(strconv.FormatInt(16*most, 16) + "\r\n")
				go func() { w.take().read(bodyEnded) }()
			}
			// It reads nothing before it has sent all.
			r.send(strings.Repeat("x", 16*most))
			if a := r.answer(); a.status != status || a.err != nil {
				t.Errorf("read %+v", a)
			}
		})
	}
}

// The end of an answer of unknown length, and its trailers, follow the handler.
func TestTheEndOfAnEarlyAnswerDoesNotWaitForTheBody(t *testing.T) {
	w := newHarness(t)
	c := w.dial()
	c.send("POST /function/hello/ HTTP/1.1\r\nHost: h\r\nContent-Length: 100000\r\n\r\nhalf")
	i := w.take()
	i.head(413)
	i.body("no more, please")
	i.end()
	begun := time.Now()
	if a := c.answer(); a.body != "no more, please" || a.err != nil || time.Since(begun) > time.Second {
		t.Errorf("read %+v after %v", a, time.Since(begun))
	}
}

// One that was asked for its body is one that is still sending.
func TestA6AClientThatAskedFirstReadsTheAnswerToWhatItSends(t *testing.T) {
	const large = 16 << 20
	w := newHarness(t)
	r := w.dial()
	r.send("PUT /function/hello/ HTTP/1.1\r\nHost: h\r\nExpect: 100-continue\r\nContent-Length: " + strconv.Itoa(large) + "\r\n\r\n")
	i := w.take()
	i.sendHead(callwire.Head{Status: 100})
	if line, err := r.r.ReadString('\n'); err != nil || line != "HTTP/1.1 100 Continue\r\n" {
		t.Fatalf("the client heard %q, %v", line, err)
	}
	_, _ = r.r.ReadString('\n')
	r.send("x")
	i.read(func(u *upload) bool { return u.body.Len() > 0 })
	i.whole(401, "who are you?")
	// It reads nothing before it has sent all.
	r.send(strings.Repeat("x", large-1))
	if a := r.answer(); a.status != 401 || a.body != "who are you?" {
		t.Errorf("read %+v", a)
	}
}

func TestA6AClientThatAsksFirstSendsNoBodyThatIsRefused(t *testing.T) {
	w := newHarness(t, func(c *gateway.Config) { c.MaxBody = 1 << 20 })
	r := w.dial()
	r.send("POST /function/hello/ HTTP/1.1\r\nHost: h\r\nExpect: 100-continue\r\nContent-Length: 2000000\r\n\r\n")
	if a := r.answer(); a.status != 413 || a.err != nil || !strings.HasSuffix(a.body, "}\n") {
		t.Errorf("read %+v", a)
	}
	r.closed()
}

func TestA5AnInstanceThatTakesNoSuchBodySaysThatNothingRan(t *testing.T) {
	w := newHarness(t)
	answers := w.call(w.get("/function/hello/"))
	w.take().fail(callwire.FailureBodyTooLarge, "at most 6 MiB")
	a := wrote(t, answers, 413, invocation.ExecutedNo)
	if p := problem(t, a, "BodyTooLarge"); p["detail"] != "at most 6 MiB" {
		t.Errorf("said %v", p)
	}
	for kind, want := range map[callwire.FailureKind]struct {
		status int
		name   string
	}{callwire.FailureUnsendable: {400, "Unsendable"}, callwire.FailureTooLate: {408, "BodyTooSlow"}} {
		answers = w.call(w.get("/function/hello/"))
		w.take().fail(kind, "why")
		problem(t, wrote(t, answers, want.status, invocation.ExecutedNo), want.name)
	}
	// One that ran before may have.
	w.putIdempotent()
	answers = w.call(w.get("/function/hello/"))
	w.take().die()
	w.take().fail(callwire.FailureBodyTooLarge, "")
	wrote(t, answers, 502, invocation.ExecutedMaybe)
}

// promise begins an answer whose body is to have a length. What the headers say of
// it does not count.
func (i *instance) promise(status int, length int64) {
	i.t.Helper()
	i.sendHead(callwire.Head{Status: status, ContentLength: length, Header: fields([]string{"Content-Length", "7"})})
}

func TestH2AnAnswerThatIsCutOffLooksCutOffToHTTP10(t *testing.T) {
	for name, head := range map[string]func(i *instance){
		"of unknown length": func(i *instance) { i.head(200) },
		"of known length":   func(i *instance) { i.promise(200, 200_000) },
	} {
		t.Run(name, func(t *testing.T) {
			w := newHarness(t)
			r := w.dial()
			r.send("GET /function/hello/ HTTP/1.0\r\nHost: h\r\n\r\n")
			i := w.take()
			head(i)
			i.body(strings.Repeat("x", 100_000))
			resp, err := http.ReadResponse(r.r, nil)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := io.ReadFull(resp.Body, make([]byte, 100_000)); err != nil {
				t.Fatal(err)
			}
			i.die()
			// A good end has no error below that of the body's length.
			if _, err := r.conn.Read(make([]byte, 1)); !errors.Is(err, syscall.ECONNRESET) {
				t.Errorf("the connection ended with %v", err)
			}
		})
	}
}

func TestM8TheLengthThatAFunctionSaidReachesTheClient(t *testing.T) {
	const large = 100_000
	eachProtocol(t, func(w *harness, client *http.Client) {
		for _, tt := range []struct {
			name, method string
			status       int
			body         int
		}{{"a large answer", "GET", 200, large}, {"HEAD", "HEAD", 200, 0}, {"HEAD of what is not there", "HEAD", 404, 0}, {"not modified", "GET", 304, 0}} {
			answers := w.callWith(client, w.request(tt.method, "/function/hello/", nil))
			i := w.take()
			i.promise(tt.status, large)
			i.body(strings.Repeat("x", tt.body))
			i.end()
			a := wrote(w.T, answers, tt.status, invocation.ExecutedYes)
			want := strconv.Itoa(large)
			if tt.status == 304 {
				want = "" // clients of HTTP/2 would wait for the body
			}
			if got := a.header.Get("Content-Length"); got != want || len(a.body) != tt.body {
				w.Errorf("%s: length %q, %d bytes", tt.name, got, len(a.body))
			}
		}
	})
}

func TestH2ABodyOfAnotherLengthThanItsHeadSaidIsCutOff(t *testing.T) {
	for name, body := range map[string]string{"shorter": "half", "longer": "twice as long", "none": ""} {
		t.Run(name, func(t *testing.T) {
			eachProtocol(t, func(w *harness, client *http.Client) {
				answers := w.callWith(client, w.get("/function/hello/"))
				i := w.take()
				i.promise(200, 8)
				i.body(body)
				i.end()
				if a := receive(w.T, answers, "the answer"); a.err == nil {
					w.Errorf("the client read %q and a clean end", a.body)
				}
			})
		})
	}
	t.Run("whole", func(t *testing.T) {
		w := newHarness(t)
		answers := w.call(w.get("/function/hello/"))
		w.take().sendHead(callwire.Head{Status: 200, ContentLength: 8, Whole: true, Body: []byte("half")})
		problem(t, wrote(t, answers, 502, invocation.ExecutedMaybe), "BadAnswer")
	})
}
