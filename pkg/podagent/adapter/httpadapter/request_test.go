package httpadapter

import (
	"bytes"
	"errors"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/windlass-dev/windlass/pkg/podagent/adapter"
)

// written is what reaches the function when it is called with call.
func written(t *testing.T, call *adapter.Call, bodyBytes int) string {
	t.Helper()
	got := make(chan string, 1)
	a := script(t, func(c net.Conn) {
		var head bytes.Buffer
		readHead(io.TeeReader(c, &head))
		body := make([]byte, bodyBytes)
		_, _ = io.ReadFull(c, body)
		got <- head.String() + string(body)
		_, _ = io.WriteString(c, "HTTP/1.1 204 No Content\r\n\r\n")
	})
	must(t, a, call)
	return <-got
}

func TestRequestIsWhatTheClientSent(t *testing.T) {
	withHeader := get("/a%2Fb/../c?x=1&y=%20")
	for _, name := range []string{"accept-encoding: br", "Connection: X-Hop", "x-hop: 1", "te: trailers", "Upgrade: websocket",
		"Expect: 100-continue", "X-Forwarded-For: 192.0.2.1"} {
		name, value, _ := strings.Cut(name, ": ")
		add(withHeader, name, value)
	}
	odd := get("//a/%2f?")
	agent := get("/")
	add(agent, "User-Agent", "curl/8")
	for _, tc := range []struct {
		name string
		call *adapter.Call
		body int
		want string
	}{
		{"end-to-end headers only", withHeader, 0,
			"GET /a%2Fb/../c?x=1&y=%20 HTTP/1.1\r\nHost: hello.example\r\naccept-encoding: br\r\nX-Forwarded-For: 192.0.2.1\r\n\r\n"},
		{"path that begins with two slashes", odd, 0, "GET //a/%2f? HTTP/1.1\r\nHost: hello.example\r\n\r\n"},
		{"letters that a URL has only encoded", get("/%C3%a9?q=é&x=х"), 0, "GET /%C3%a9?q=%C3%A9&x=%D1%85 HTTP/1.1\r\nHost: hello.example\r\n\r\n"},
		{"the client's User-Agent", agent, 0, "GET / HTTP/1.1\r\nHost: hello.example\r\nUser-Agent: curl/8\r\n\r\n"},
		{"POST with no body", post(strings.NewReader(""), 0), 0,
			"POST / HTTP/1.1\r\nHost: hello.example\r\nContent-Length: 0\r\n\r\n"},
		{"POST with a small body", post(bytes.NewReader([]byte("abc")), 3), 3,
			"POST / HTTP/1.1\r\nHost: hello.example\r\nContent-Length: 3\r\n\r\nabc"},
		{"POST with a small body whose length the client did not say", post(bytes.NewReader([]byte("abc")), -1), 3,
			"POST / HTTP/1.1\r\nHost: hello.example\r\nContent-Length: 3\r\n\r\nabc"},
		{"POST with a streamed body of known length", post(io.MultiReader(strings.NewReader("abc")), 3), 3,
			"POST / HTTP/1.1\r\nHost: hello.example\r\nContent-Length: 3\r\n\r\nabc"},
		{"POST with a streamed body of unknown length", post(io.MultiReader(strings.NewReader("abc")), -1), 13,
			"POST / HTTP/1.1\r\nHost: hello.example\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, written(t, tc.call, tc.body)); diff != "" {
				t.Errorf("request (-want +got):\n%s", diff)
			}
		})
	}
}

// No instance would do better, so the call must not go to the next one.
func TestARequestThatHTTP1DoesNotHaveCannotBeSent(t *testing.T) {
	a := serve(t, func(http.ResponseWriter, *http.Request) { t.Error("the function saw it") })
	for name, change := range map[string]func(*adapter.Call){
		"a trailer that is none":    func(c *adapter.Call) { c.Trailer = http.Header{"Authorization": nil} },
		"a method that is no token": func(c *adapter.Call) { c.Method = "A B" },
		"a value of two lines":      func(c *adapter.Call) { add(c, "X", "a\r\nb") },
	} {
		t.Run(name, func(t *testing.T) {
			call := post(io.MultiReader(strings.NewReader("abc")), -1)
			change(call)
			wantError(t, a.Invoke(t.Context(), call, &recorder{}), adapter.ErrUnsendable)
		})
	}
}

func TestRequestBodyStreamsWhileTheAnswerDoes(t *testing.T) {
	a := serve(t, func(w http.ResponseWriter, r *http.Request) {
		ctl := http.NewResponseController(w)
		_ = ctl.EnableFullDuplex()
		_, _ = io.WriteString(w, "?")
		_ = ctl.Flush()
		b := make([]byte, 1)
		for {
			if _, err := r.Body.Read(b); err != nil {
				return
			}
			_, _ = w.Write(b)
			_ = ctl.Flush()
		}
	})
	pr, pw := io.Pipe()
	left := "abc"
	// Each byte of the body is only there once the answer to the one before
	// it was passed on.
	w := &recorder{onWrite: func() error {
		if left == "" {
			return pw.Close()
		}
		b := left[:1]
		left = left[1:]
		_, err := io.WriteString(pw, b)
		return err
	}}
	if err := a.Invoke(t.Context(), post(pr, -1), w); err != nil {
		t.Fatal(err)
	}
	if w.body.String() != "?abc" {
		t.Errorf("answer %q, want ?abc", w.body.String())
	}
}

func TestBodyThatBreaksOffNeverLooksComplete(t *testing.T) {
	for name, length := range map[string]int64{"chunked": -1, "of known length": 6} {
		t.Run(name, func(t *testing.T) {
			seen := make(chan error, 1)
			a := serve(t, func(_ http.ResponseWriter, r *http.Request) {
				_, err := io.ReadAll(r.Body)
				seen <- err
			})
			broke := errors.New("client went away")
			pr, pw := io.Pipe()
			go func() {
				_, _ = io.WriteString(pw, "abc")
				_ = pw.CloseWithError(broke)
			}()
			err := a.Invoke(t.Context(), post(pr, length), &recorder{})
			wantError(t, err, adapter.ErrFunctionLost)
			if !errors.Is(err, broke) {
				t.Errorf("error %v does not say why", err)
			}
			if err := <-seen; err == nil {
				t.Error("the function saw a complete body")
			}
		})
	}
}

// The client sends nothing more, so only the broken connection can tell.
func TestFunctionThatEndsWhileTheClientIsSlowIsLostAtOnce(t *testing.T) {
	pr, pw := io.Pipe()
	defer pw.Close()
	a := script(t, func(c net.Conn) { readHead(c) })
	wantError(t, a.Invoke(t.Context(), post(pr, 10), &recorder{}), adapter.ErrFunctionLost)
}

// The last write of the body waits for a function that has answered and reads nothing more.
func TestABodyThatIsNeverReadDoesNotHoldUpTheEndOfTheCall(t *testing.T) {
	over := make(chan struct{})
	a := script(t, func(c net.Conn) {
		readHead(c)
		_, _ = io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
		<-over
	})
	defer close(over)
	for range 2 {
		if w := must(t, a, post(bytes.NewReader(make([]byte, 32<<20)), 32<<20)); w.body.String() != "ok" {
			t.Errorf("got %q", w.body.String())
		}
	}
}

// The connection is reset because the function never reads the body; its
// answer came before that and counts.
func TestAnswerThatComesBeforeTheWholeBodyCounts(t *testing.T) {
	a := script(t, func(c net.Conn) {
		readHead(c)
		_, _ = io.WriteString(c, "HTTP/1.1 413 Too Large\r\nContent-Length: 2\r\nConnection: close\r\n\r\nno")
	})
	for range 50 {
		w := must(t, a, post(io.MultiReader(strings.NewReader(strings.Repeat("x", 8<<20))), 8<<20))
		if w.head.Status != 413 || w.body.String() != "no" {
			t.Fatalf("got %d %q, want 413 no", w.head.Status, w.body.String())
		}
	}
}
