package serve

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"slices"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
)

// waitingOf is a connection of an address.
func waitingOf(w *waitingConns, addr string) *clientConn {
	return &clientConn{waiting: w, network: networkOf(net.TCPAddrFromAddrPort(netip.MustParseAddrPort(addr)))}
}

func TestWhoGoesIfTooManyConnectionsWait(t *testing.T) {
	w := newWaitingConns(4, prometheus.NewRegistry())
	accept := func(addr string, gone ...*clientConn) *clientConn {
		t.Helper()
		c := waitingOf(w, addr)
		if surplus := w.accept(c); !slices.Equal(surplus, gone) {
			t.Fatalf("for %s go %d, want %d, or other ones", addr, len(surplus), len(gone))
		}
		return c
	}
	first, second, other := accept("[2001:db8::1]:1"), accept("[2001:db8::2]:1"), accept("192.0.2.1:1")
	third := accept("[2001:db8::3]:1")
	// One that had a request is the youngest when it waits again.
	w.dropBusy(first)
	w.add(first)
	accept("198.51.100.1:1", second) // of the network with the most
	accept("192.0.2.2:1", third)
	w.dropClosed(other)
	w.add(other) // too late
	crowd := []*clientConn{accept("203.0.113.1:1")}
	for n := range 3 { // that are answered, which closes nothing
		crowd = append(crowd, waitingOf(w, fmt.Sprintf("203.0.113.1:%d", n+2)))
		w.add(crowd[n+1])
	}
	if w.count != 7 {
		t.Errorf("%d wait, want 7", w.count)
	}
	accept("203.0.113.1:9", crowd...)
}

// In HTTP/2 a client can end a request before the handler's goroutine runs.
func TestAConnectionWhoseHandlerBeginsAfterItsRequestHasEndedWaits(t *testing.T) {
	for name, c := range map[string]struct {
		states []http.ConnState
		want   int
	}{
		"a request that runs":                       {[]http.ConnState{http.StateActive}, 0},
		"one that has ended":                        {[]http.ConnState{http.StateActive, http.StateIdle}, 1},
		"one that has ended while another one runs": {[]http.ConnState{http.StateActive, http.StateIdle, http.StateActive}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWaitingConns(4, prometheus.NewRegistry())
			server := &http.Server{Handler: http.HandlerFunc(func(http.ResponseWriter, *http.Request) {})}
			clients{waiting: w}.attach(server)
			conn := waitingOf(w, "192.0.2.1:1")
			w.accept(conn)
			for _, state := range c.states {
				server.ConnState(conn, state)
			}
			r := httptest.NewRequestWithContext(server.ConnContext(t.Context(), conn), http.MethodGet, "/", nil)
			server.Handler.ServeHTTP(httptest.NewRecorder(), r)
			if w.count != c.want {
				t.Errorf("%d connections wait, want %d", w.count, c.want)
			}
		})
	}
}

// Connections without a request are bounded, in HTTP/1.1 and HTTP/2, and those with one are not.
func TestConnectionsWithoutARequestAreBounded(t *testing.T) {
	const most = 3
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	reg := prometheus.NewRegistry()
	ended, answer, began := make(chan error, 1), make(chan struct{}), make(chan struct{}, 100)
	handler := func(w http.ResponseWriter, r *http.Request) {
		began <- struct{}{}
		<-answer
		_, _ = io.WriteString(w, r.Proto)
	}
	go func() {
		ended <- serveCalls(ctx, l, http.HandlerFunc(handler), time.Second, most, reg, slog.New(slog.DiscardHandler))
	}()
	defer func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	}()
	addr := l.Addr().String()
	const request = "GET / HTTP/1.1\r\nHost: h\r\n\r\n"
	var busy []net.Conn
	for range 2 * most {
		conn := dial(t, addr)
		_, _ = io.WriteString(conn, request)
		<-began
		busy = append(busy, conn)
	}
	second := &http.Transport{Protocols: new(http.Protocols)}
	second.Protocols.SetUnencryptedHTTP2(true)
	defer second.CloseIdleConnections()
	http2 := make(chan string, 1)
	go func() {
		resp, err := (&http.Client{Transport: second}).Get("http://" + addr)
		if err != nil {
			http2 <- err.Error()
			return
		}
		defer resp.Body.Close()
		body, _ := io.ReadAll(resp.Body)
		http2 <- string(body)
	}()
	<-began
	var silent []net.Conn
	for range 2 * most {
		silent = append(silent, dial(t, addr))
	}
	for n, conn := range silent[:most] { // they have waited longest
		if _, err := conn.Read(make([]byte, 1)); err == nil || errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("silent connection %d is open", n)
		}
	}
	close(answer)
	if got := <-http2; got != "HTTP/2.0" {
		t.Errorf("HTTP/2 is answered %q", got)
	}
	for n, conn := range busy {
		resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
		if err != nil {
			t.Fatalf("call %d: %v", n, err)
		}
		_, _ = io.Copy(io.Discard, resp.Body)
	}
	// All wait for a request now, or will in a moment. New connections close what is too much.
	for opened, limit := 4*most+1, time.After(20*time.Second); ; {
		dial(t, addr)
		opened++
		if closed := int(testutil.ToFloat64(registered(reg, httpClosedTotal.New()))); closed == opened-most {
			return
		}
		select {
		case <-limit:
			t.Fatalf("of %d connections too few were closed", opened)
		case <-time.After(time.Millisecond):
		}
	}
}
