package httpadapter

import (
	"bufio"
	"bytes"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
	"testing/iotest"

	"pgregory.net/rapid"

	"github.com/windlass-dev/windlass/pkg/podagent/adapter"
)

// framings are the ways in which a function may send a body, and whether its connection can
// have another call after that.
var framings = []struct {
	name string
	send func(w io.Writer, body []byte)
	kept bool
}{
	{"with its length", func(w io.Writer, body []byte) {
		_, _ = fmt.Fprintf(w, "HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s", len(body), body)
	}, true},
	{"in chunks", func(w io.Writer, body []byte) {
		_, _ = io.WriteString(w, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
		for len(body) > 0 {
			n := min(len(body), 1+len(body)/3)
			_, _ = fmt.Fprintf(w, "%x;ext\r\n%s\r\n", n, body[:n])
			body = body[n:]
		}
		_, _ = io.WriteString(w, "0\r\n\r\n")
	}, true},
	{"with its length, and closes", func(w io.Writer, body []byte) {
		_, _ = fmt.Fprintf(w, "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: %d\r\n\r\n%s", len(body), body)
	}, false},
	{"until it closes", func(w io.Writer, body []byte) {
		_, _ = fmt.Fprintf(w, "HTTP/1.1 200 OK\r\n\r\n%s", body)
	}, false},
	{"as HTTP/1.0", func(w io.Writer, body []byte) { _, _ = fmt.Fprintf(w, "HTTP/1.0 200 OK\r\n\r\n%s", body) }, false},
	{"as HTTP/1.0 that keeps the connection", func(w io.Writer, body []byte) {
		_, _ = fmt.Fprintf(w, "HTTP/1.0 200 OK\r\nConnection: keep-alive\r\nContent-Length: %d\r\n\r\n%s", len(body), body)
	}, true},
}

// One call after the other comes back as it was sent, whatever its size and framing in either
// direction, on as few connections as the answers allow.
func TestBodiesOfAllSizesAndFramingsComeBack(t *testing.T) {
	noise := make([]byte, 200<<10)
	_, _ = rand.Read(noise)
	framing := make(chan int, 1)
	var conns atomic.Int64
	a := script(t, func(c net.Conn) {
		conns.Add(1)
		in := bufio.NewReader(c)
		for {
			request, err := http.ReadRequest(in)
			if err != nil {
				return
			}
			body, err := io.ReadAll(request.Body)
			if err != nil {
				return
			}
			f := framings[<-framing]
			f.send(c, body)
			if !f.kept {
				return
			}
		}
	})
	want, broken := int64(0), true
	rapid.Check(t, func(rt *rapid.T) {
		body := noise[:sizes.Draw(rt, "size")]
		source, length := drawSource(rt, body)
		n := rapid.IntRange(0, len(framings)-1).Draw(rt, "framing")
		framing <- n
		w := &recorder{}
		if err := a.Invoke(t.Context(), post(source, length), w); err != nil {
			rt.Fatalf("%d bytes, answered %s: %v", len(body), framings[n].name, err)
		}
		if !bytes.Equal(w.body.Bytes(), body) {
			rt.Fatalf("%d bytes came back as %d others, answered %s", len(body), w.body.Len(), framings[n].name)
		}
		if broken {
			want++
		}
		broken = !framings[n].kept
	})
	if conns.Load() != want {
		t.Errorf("%d connections, want %d", conns.Load(), want)
	}
}

var sizes = rapid.OneOf(
	rapid.IntRange(0, 3),
	rapid.IntRange(smallBytes-20, smallBytes+20),
	rapid.IntRange(inlineBody-2, inlineBody+2),
	rapid.IntRange(largeBytes-20, largeBytes+20),
	rapid.IntRange(0, 200<<10),
)

// drawSource is a body's reader, and its length as the call says it.
func drawSource(t *rapid.T, body []byte) (io.Reader, int64) {
	switch rapid.IntRange(0, 4).Draw(t, "source") {
	case 0:
		return bytes.NewReader(body), int64(len(body))
	case 1:
		return bytes.NewReader(body), -1
	case 2:
		return iotest.HalfReader(bytes.NewReader(body)), int64(len(body))
	case 3:
		return iotest.DataErrReader(bytes.NewReader(body)), -1
	}
	return io.MultiReader(bytes.NewReader(body)), -1
}

// Nothing in a call makes two requests of one, or a header that the call does not have.
func TestACallIsOneRequestOrNone(t *testing.T) {
	got := make(chan *http.Request, 1)
	a := script(t, func(c net.Conn) {
		in := bufio.NewReader(c)
		for {
			request, err := http.ReadRequest(in)
			if err != nil || request.ProtoMajor == 2 { // it does not speak HTTP/2, for which an adapter that has had no answer asks
				return
			}
			got <- request
			_, _ = io.WriteString(c, "HTTP/1.1 204 No Content\r\n\r\n")
		}
	})
	text := rapid.StringOfN(rapid.RuneFrom([]rune("aZ/?%:-_ \t\r\n\x00\x7f")), 0, 6, -1)
	names := rapid.OneOf(text, rapid.SampledFrom([]string{"content-length", "Transfer-Encoding", "host", "X-A", "Connection", "trailer", "upgrade"}))
	rapid.Check(t, func(rt *rapid.T) {
		call := get("/" + text.Draw(rt, "uri"))
		if rapid.Bool().Draw(rt, "odd line") {
			call.Method, call.Host = text.Draw(rt, "method"), text.Draw(rt, "host")
		}
		for range rapid.IntRange(0, 3).Draw(rt, "headers") {
			name := names.Draw(rt, "name")
			add(call, name, text.Draw(rt, "value"))
		}
		err := a.Invoke(t.Context(), call, &recorder{})
		_, noURL := url.ParseRequestURI(call.RequestURI)
		if err != nil && noURL != nil && errors.Is(err, adapter.ErrFunctionLost) {
			return
		}
		if err != nil {
			wantError(t, err, adapter.ErrUnsendable)
			return
		}
		request := <-got
		if request.Method != call.Method || request.RequestURI != call.RequestURI || call.Host != "" && request.Host != call.Host {
			rt.Errorf("%q %q %q arrived as %q %q %q", call.Method, call.RequestURI, call.Host, request.Method, request.RequestURI, request.Host)
		}
		if request.ContentLength > 0 || len(request.TransferEncoding) > 0 {
			rt.Errorf("a request without a body has one: %+v", request)
		}
		for name, values := range request.Header {
			sent := 0
			for _, have := range call.Header {
				if http.CanonicalHeaderKey(have.Name) == name {
					sent++
				}
			}
			if len(values) > sent {
				rt.Errorf("the header %q: %q was not sent", name, values)
			}
		}
	})
}

// A function that answers at length before it reads a body that no buffer holds.
func TestAnAnswerThatComesBeforeTheBodyIsReadBlocksNothing(t *testing.T) {
	const size = 16 << 20
	for _, body := range []int{inlineBody, 64 << 10, size} {
		a := script(t, func(c net.Conn) {
			in := bufio.NewReader(c)
			request, err := http.ReadRequest(in)
			if err != nil {
				return
			}
			_, _ = fmt.Fprintf(c, "HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n", size)
			_, _ = io.CopyN(c, zeros{}, size-1)
			n, _ := io.Copy(io.Discard, request.Body)
			if n == int64(body) {
				_, _ = c.Write([]byte{1})
			}
		})
		w := must(t, a, post(bytes.NewReader(make([]byte, body)), int64(body)))
		if w.body.Len() != size || w.body.Bytes()[size-1] != 1 {
			t.Errorf("%d bytes came back", w.body.Len())
		}
	}
}

type zeros struct{}

func (zeros) Read(p []byte) (int, error) { clear(p); return len(p), nil }

func TestNoMoreThanItsLengthIsWrittenOfABody(t *testing.T) {
	for name, source := range map[string]io.Reader{
		"in memory": bytes.NewReader([]byte("abcdef")), "streamed": io.MultiReader(strings.NewReader("abcdef")),
	} {
		t.Run(name, func(t *testing.T) {
			if got := written(t, post(source, 3), 3); !strings.HasSuffix(got, "Content-Length: 3\r\n\r\nabc") {
				t.Errorf("wrote %q", got)
			}
		})
	}
}
