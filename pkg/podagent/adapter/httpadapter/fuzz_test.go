package httpadapter

import (
	"context"
	"errors"
	"net"
	"testing"
	"time"

	"github.com/windlass-dev/windlass/pkg/podagent/adapter"
)

// FuzzAnswer calls a function that answers with anything.
func FuzzAnswer(f *testing.F) {
	for _, answer := range []string{
		"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nabc",
		"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\nX-A: b\r\n\r\n",
		"HTTP/1.1 103 Early Hints\r\n\r\nHTTP/1.1 204 No Content\r\n\r\nHTTP/1.1 200 OK\r\n\r\n",
		"HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nab",
		"HTTP/1.0 999\r\n\r\n", "\x00",
	} {
		f.Add([]byte(answer))
	}
	f.Fuzz(func(t *testing.T, answer []byte) {
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
		a := New(Config{Addr: l.Addr().String(), Concurrency: 1})
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		w := &recorder{}
		err = a.Invoke(ctx, get("/"), w)
		a.Close()
		_ = l.Close()
		<-served
		switch {
		case err == nil && (w.heads != 1 || w.head.Status < 200 || w.head.Status > 599):
			t.Errorf("%q is good: %d heads, %+v", answer, w.heads, w.head)
		case err == nil && w.head.ContentLength >= 0 && int64(w.body.Len()) != w.head.ContentLength && w.head.Status != 304 && w.head.Status != 204:
			t.Errorf("%q has %d bytes of %d", answer, w.body.Len(), w.head.ContentLength)
		case err != nil && errors.Is(err, adapter.ErrNotStarted):
			t.Errorf("%q: the function saw the request, but %v", answer, err)
		}
	})
}
