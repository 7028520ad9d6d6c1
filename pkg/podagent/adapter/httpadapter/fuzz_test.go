package httpadapter

import (
	"context"
	"errors"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/windlass-dev/windlass/pkg/podagent/adapter"
)

// FuzzAnswer calls a function that answers with anything, once as it should and once for each
// of the bits of asks: a request that asks for another protocol, one for HTTP/2, HEAD.
func FuzzAnswer(f *testing.F) {
	for _, answer := range []string{
		"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nabc",
		"HTTP/1.1 200 OK\r\nTrailer: X-A\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\nX-A: b\r\n\r\n",
		"HTTP/1.1 103 Early Hints\r\n\r\nHTTP/1.1 204 No Content\r\n\r\nHTTP/1.1 200 OK\r\n\r\n",
		"HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nab",
		"HTTP/1.1 101 Switching Protocols\r\nUpgrade: tea\r\nConnection: Upgrade\r\n\r\nabc",
		"\x00\x00\x00\x04\x00\x00\x00\x00\x00\x00\x00\x01\x01\x05\x00\x00\x00\x01\x88",
		"HTTP/1.0 999\r\n\r\n", "\x00",
	} {
		for asks := range uint8(4) {
			f.Add([]byte(answer), asks)
		}
	}
	f.Fuzz(func(t *testing.T, answer []byte, asks uint8) {
		call := get("/")
		switch asks % 4 {
		case 1:
			call.Upgrade = "tea"
		case 2:
			call = grpcCall(strings.NewReader(""))
		case 3:
			call.Method = http.MethodHead
		}
		w, err := answered(t, call, answer)
		final := w.head.Status == 101 && call.Upgrade != "" && strings.EqualFold(w.head.Upgrade, "tea") || w.head.Status >= 200 && w.head.Status <= 599
		for _, h := range w.interim {
			if h.Status <= 101 || h.Status > 199 {
				t.Errorf("%q has the interim answer %+v", answer, h)
			}
		}
		switch {
		case errors.Is(err, context.DeadlineExceeded):
			t.Errorf("%q has no end", answer)
		case w.heads > 1 || w.heads == 0 && (w.body.Len() > 0 || w.trailer != nil):
			t.Errorf("%q has %d heads, %d bytes, trailers %v", answer, w.heads, w.body.Len(), w.trailer)
		case err == nil && (w.heads != 1 || !final):
			t.Errorf("%q is good: %d heads, %+v", answer, w.heads, w.head)
		case err == nil && w.head.ContentLength >= 0 && int64(w.body.Len()) != w.head.ContentLength && w.head.Status != 304 && w.head.Status != 204 && call.Method != http.MethodHead:
			t.Errorf("%q has %d bytes of %d", answer, w.body.Len(), w.head.ContentLength)
		case errors.Is(err, adapter.ErrNotStarted) && asks%4 != 2: // a stream may be refused
			t.Errorf("%q: the function saw the request, but %v", answer, err)
		}
	})
}

// answered is what comes of a call to a function that answers so, and then closes.
func answered(t *testing.T, call *adapter.Call, answer []byte) (*recorder, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	served := make(chan struct{})
	go func() {
		defer close(served)
		c, err := l.Accept()
		if err != nil {
			return
		}
		defer c.Close()
		readHead(c)
		_, _ = c.Write(answer)
	}()
	a := New(Config{Addr: l.Addr().String()})
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	w := &recorder{}
	err = a.Invoke(ctx, call, w)
	a.Close()
	_ = l.Close()
	<-served
	return w, err
}
