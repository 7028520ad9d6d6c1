package serve

import (
	"bytes"
	"container/list"
	"context"
	"net"
	"net/http"
	"net/netip"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/windlass-dev/windlass/internal/rawtcp"
	"github.com/windlass-dev/windlass/pkg/invocation"
)

// improper makes sure that net/http's own answers to malformed HTTP/1.1 say that no function
// ran, and counts them. It does not see HTTP/2, where a malformed request ends the stream or
// the connection.
type improper struct{ refused *prometheus.CounterVec }

func newImproper(reg prometheus.Registerer) *improper {
	i := &improper{refused: httpRefusedTotal.Vec()}
	reg.MustRegister(i.refused)
	return i
}

// attach makes a server use it.
func (l clients) attach(s *http.Server) {
	s.ConnContext = func(ctx context.Context, c net.Conn) context.Context {
		return context.WithValue(ctx, clientKey{}, c)
	}
	s.ConnState = func(conn net.Conn, state http.ConnState) {
		c, ok := conn.(*clientConn)
		switch {
		case ok && state == http.StateActive:
			c.waiting.dropBusy(c)
		case ok && state == http.StateIdle:
			c.answering.Store(false)
			c.waiting.add(c)
		}
	}
	handler := s.Handler
	s.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if c, ok := r.Context().Value(clientKey{}).(*clientConn); ok {
			c.answering.Store(true)
		}
		handler.ServeHTTP(w, r)
	})
}

type clientKey struct{}

// clients is the listener that goes with it.
type clients struct {
	net.Listener
	improper *improper
	waiting  *waitingConns
}

func (l clients) Accept() (net.Conn, error) {
	conn, err := l.Listener.Accept()
	if tcp, ok := conn.(*net.TCPConn); ok && err == nil {
		c := &clientConn{TCPConn: tcp, raw: rawtcp.Wrap(tcp), improper: l.improper, waiting: l.waiting, network: networkOf(tcp.RemoteAddr())}
		for _, surplus := range l.waiting.accept(c) {
			_ = surplus.Close()
		}
		return c, nil
	}
	return conn, err
}

// clientConn is one client's connection.
type clientConn struct {
	*net.TCPConn // whose other methods net/http looks for
	// raw is the same connection, for reads, writes and their deadlines.
	raw      net.Conn
	improper *improper
	// answering is true from when the handler has a request until net/http
	// waits for the next one. All that is written meanwhile is the handler's,
	// whatever it looks like.
	answering atomic.Bool
	// lingerUntil is until when Close discards what comes, in Unix nanoseconds; 0 if it does not.
	lingerUntil atomic.Int64

	waiting *waitingConns
	network netip.Prefix
	// waits is its place among those without a request; nil if it has one, or has ended. The lock of
	// waiting guards both.
	waits *list.Element
	ended bool
}

// Close implements net.Conn.
func (c *clientConn) Close() error {
	c.waiting.dropClosed(c)
	c.linger()
	return c.TCPConn.Close()
}

// SetDeadline implements net.Conn.
func (c *clientConn) SetDeadline(t time.Time) error { return c.raw.SetDeadline(t) }

// SetReadDeadline implements net.Conn.
func (c *clientConn) SetReadDeadline(t time.Time) error { return c.raw.SetReadDeadline(t) }

// SetWriteDeadline implements net.Conn.
func (c *clientConn) SetWriteDeadline(t time.Time) error { return c.raw.SetWriteDeadline(t) }

// Read implements net.Conn.
func (c *clientConn) Read(p []byte) (int, error) { return c.raw.Read(p) }

// Write implements net.Conn.
func (c *clientConn) Write(p []byte) (int, error) {
	if c.answering.Load() {
		return c.raw.Write(p)
	}
	code, at := refusal(p)
	if code == "" {
		return c.raw.Write(p)
	}
	c.improper.refused.WithLabelValues(code).Inc()
	answer := make([]byte, 0, len(p)+64)
	answer = append(answer, p[:at]...)
	answer = append(answer, invocation.HeaderExecuted+": "+string(invocation.ExecutedNo)+"\r\n"...)
	answer = append(answer, p[at:]...)
	if _, err := c.raw.Write(answer); err != nil {
		return 0, err
	}
	return len(p), nil
}

// refusal returns the status code of an answer that is an error and where its
// headers begin; the code is empty if it is none.
func refusal(p []byte) (code string, at int) {
	line, _, found := bytes.Cut(p, []byte("\r\n"))
	rest, is := bytes.CutPrefix(line, []byte("HTTP/1.1 "))
	if !found || !is || len(rest) < 3 || rest[0] != '4' && rest[0] != '5' {
		return "", 0
	}
	return string(rest[:3]), len(line) + 2
}
