package httpadapter

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/windlass-dev/windlass/internal/backoff"
	"github.com/windlass-dev/windlass/internal/sleep"
	"github.com/windlass-dev/windlass/pkg/podagent/adapter"
)

const (
	// firstRetry and lastRetry bound the pause between two attempts to
	// connect to a function that is starting.
	firstRetry = time.Millisecond
	lastRetry  = 25 * time.Millisecond

	// dialTimeout bounds one attempt to connect. A function that accepts nothing more would
	// hold it until the call's deadline, although another instance may have room.
	dialTimeout = 10 * time.Second
)

// Config says where the function is.
type Config struct {
	// Addr is the function's address, host:port.
	Addr string
}

// Validate returns an error that names the invalid settings.
func (c Config) Validate() error {
	if _, _, err := net.SplitHostPort(c.Addr); err != nil {
		return fmt.Errorf("addr %q is not host:port: %w", c.Addr, err)
	}
	return nil
}

// Adapter is an adapter.Adapter for one HTTP server.
type Adapter struct {
	addr  string
	dial  func(ctx context.Context, network, addr string) (net.Conn, error)
	idle  idleConns
	http2 http2Client
	// speaksHTTP1 says that the function has answered a call by HTTP/1.1.
	speaksHTTP1 atomic.Bool
}

var _ adapter.Adapter = (*Adapter)(nil)

// New is an Adapter for a valid cfg. It connects to nothing yet.
func New(cfg Config) *Adapter {
	// The function is on this machine, so the system closes its connections when it ends.
	dialer := &net.Dialer{Timeout: dialTimeout, KeepAlive: -1}
	return &Adapter{
		addr: cfg.Addr, dial: dialer.DialContext,
		http2: http2Client{addr: cfg.Addr, dial: dialer.DialContext, dialing: make(chan struct{}, 1)},
	}
}

// Close closes the idle connections. Calls that run are not touched.
func (a *Adapter) Close() {
	a.idle.close()
	a.http2.closeIdle()
}

// WaitReady returns when the function accepts connections.
func (a *Adapter) WaitReady(ctx context.Context) error {
	retry := backoff.Backoff{First: firstRetry, Last: lastRetry}
	for {
		c, err := a.dial(ctx, "tcp", a.addr)
		if err == nil {
			return c.Close()
		}
		if !sleep.For(ctx, retry.Next()) {
			_, port, _ := net.SplitHostPort(a.addr)
			return adapter.NotReady(ctx, fmt.Sprintf(
				"nothing accepts connections at %s: the program must listen on $PORT, which is %s, on 127.0.0.1 or 0.0.0.0%s", a.addr, port, unlessRefused(err)))
		}
	}
}

// unlessRefused says how the last attempt to connect failed, unless it was refused, as
// it is where nothing listens.
func unlessRefused(err error) string {
	if errors.Is(err, syscall.ECONNREFUSED) || errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled) {
		return ""
	}
	return fmt.Sprintf("; the last attempt failed: %v", err)
}
