package main

import (
	"context"
	"crypto/tls"
	"io"
	"log/slog"
	"net"
	"strings"
	"testing"

	"github.com/windlass-dev/windlass/internal/callwire"
	"github.com/windlass-dev/windlass/internal/mtls"
	"github.com/windlass-dev/windlass/internal/mtls/testca"
)

const testDomain = mtls.Domain("windlass.svc")

// The agent talks to what has the gateway's certificate, and to nothing else.
func TestTheDialerInsistsOnAGateway(t *testing.T) {
	ca := testca.New(t)
	for name, tc := range map[string]struct {
		names []string
		fails string
	}{
		"a gateway":   {[]string{testDomain.Gateway()}, ""},
		"a scheduler": {[]string{testDomain.Scheduler()}, "not " + testDomain.Gateway()},
	} {
		t.Run(name, func(t *testing.T) {
			credentials, err := mtls.Load(ca.Folder(t, tc.names...), slog.New(slog.DiscardHandler))
			if err != nil {
				t.Fatal(err)
			}
			l, err := tls.Listen("tcp", "127.0.0.1:0", credentials.CallServer())
			if err != nil {
				t.Fatal(err)
			}
			defer l.Close()
			go func() {
				if c, err := l.Accept(); err == nil {
					_, _ = io.WriteString(c, "hello")
					_ = c.Close()
				}
			}()
			dialer, err := newDialer(string(ca.PEM()), testDomain)
			if err != nil {
				t.Fatal(err)
			}
			conn, err := dialer.Gateway(t.Context(), l.Addr().String())
			if tc.fails != "" {
				if err == nil || !strings.Contains(err.Error(), tc.fails) {
					t.Fatalf("got %v, want %q", err, tc.fails)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			defer conn.Close()
			if got := conn.(*tls.Conn).ConnectionState().NegotiatedProtocol; got != callwire.ALPN {
				t.Errorf("it agreed on %q", got)
			}
			if text, err := io.ReadAll(conn); string(text) != "hello" || err != nil {
				t.Errorf("read %q, %v", text, err)
			}
		})
	}
}

// A handshake that does not come ends with the attempt to connect.
func TestTheDialerDoesNotWaitForAHandshakeForEver(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	dialer, err := newDialer(string(testca.New(t).PEM()), testDomain)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		if c, err := l.Accept(); err == nil {
			defer c.Close()
			_, _ = c.Read(make([]byte, 1))
			cancel()
			_, _ = io.Copy(io.Discard, c)
		}
	}()
	if _, err := dialer.Gateway(ctx, l.Addr().String()); err == nil {
		t.Error("connected without a handshake")
	}
}
