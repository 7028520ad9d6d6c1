package serve

import (
	"context"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// pipes is a listener without a network.
type pipes struct {
	conns  chan net.Conn
	closed chan struct{}
}

func (p pipes) Accept() (net.Conn, error) {
	select {
	case c := <-p.conns:
		return c, nil
	case <-p.closed:
		return nil, net.ErrClosed
	}
}

func (p pipes) Close() error { close(p.closed); return nil }

func (pipes) Addr() net.Addr { return &net.TCPAddr{} }

// A connection that its handler has taken over, as for a WebSocket, is a call in flight like others.
func TestAnUpgradedConnectionMayEndBeforeItsServerDoes(t *testing.T) {
	const drain = time.Minute
	for name, tc := range map[string]struct {
		takes, ends time.Duration
		log         string
	}{
		"ends in time": {5 * time.Second, 5 * time.Second, ""},
		"is cut off":   {time.Hour, drain, "cut off"},
		"none":         {0, 0, ""},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				over := make(chan struct{})
				handler := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
					conn, _, err := http.NewResponseController(w).Hijack()
					if err != nil {
						t.Error(err)
						return
					}
					_, _ = io.WriteString(conn, "mine")
					<-over
					_ = conn.Close()
				})
				ctx, stop := context.WithCancel(t.Context())
				l := pipes{make(chan net.Conn), make(chan struct{})}
				var log strings.Builder
				ended := make(chan error, 1)
				go func() {
					ended <- Calls(ctx, l, handler, drain, prometheus.NewRegistry(), slog.New(slog.NewTextHandler(&log, nil)))
				}()
				if tc.takes > 0 {
					near, far := net.Pipe()
					defer near.Close()
					l.conns <- far
					_, _ = io.WriteString(near, "GET / HTTP/1.1\r\nHost: h\r\n\r\n")
					if _, err := io.ReadFull(near, make([]byte, len("mine"))); err != nil {
						t.Fatal(err)
					}
					time.AfterFunc(tc.takes, func() { close(over) })
				}
				begun := time.Now()
				stop()
				if err := <-ended; err != nil {
					t.Error(err)
				}
				if took := time.Since(begun); took < tc.ends || took > tc.ends+time.Second {
					t.Errorf("ended after %v, want %v", took, tc.ends)
				}
				if got := log.String(); !strings.Contains(got, tc.log) || got != "" && tc.log == "" {
					t.Errorf("logged %q", got)
				}
				if tc.takes > 0 {
					<-over
				}
			})
		})
	}
}
