package gateway_test

import (
	"context"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/windlass-dev/windlass/api/v1alpha1"
	"github.com/windlass-dev/windlass/internal/callwire"
	"github.com/windlass-dev/windlass/internal/serve"
	"github.com/windlass-dev/windlass/pkg/gateway"
	"github.com/windlass-dev/windlass/pkg/rollout"
)

// leavings are clients that leave behind a body, or a part of it, that was not read.
var leavings = map[string]string{
	"chunked":                    "POST /function/hello/ HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nhalf\r\n",
	"chunked, and whole":         "POST /function/hello/ HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nall!\r\n0\r\n\r\n",
	"large":                      "POST /function/hello/ HTTP/1.1\r\nHost: h\r\nContent-Length: 100000\r\n\r\nhalf",
	"large, and none of it sent": "POST /function/hello/ HTTP/1.1\r\nHost: h\r\nContent-Length: 100000\r\n\r\n",
}

func TestM1ACallWhoseClientLeftBeforeItsBodyWasReadNeverRuns(t *testing.T) {
	t.Parallel()
	for name, request := range leavings {
		t.Run("found out while it waits: "+name, func(t *testing.T) {
			w := newHarnessWith(t, func(_ *gateway.Config, d *gateway.Deps) { d.Left = serve.ClientLeft })
			r := w.dial()
			r.send(request)
			ticket := w.scheduler.ticket()
			r.conn.Close()
			w.scheduler.cancelled(ticket)
			if got := w.claim(ticket).refused; got != callwire.RefusedNotWaiting {
				t.Errorf("claim of a call that nobody waits for: %v", got)
			}
		})
		t.Run("found out by its claim: "+name, func(t *testing.T) {
			var left atomic.Bool
			w := newHarnessWith(t, func(_ *gateway.Config, d *gateway.Deps) {
				d.Left = func(*http.Request) bool { return left.Load() }
			})
			r := w.dial()
			r.send(request)
			ticket := w.scheduler.ticket()
			left.Store(true)
			if got := w.claim(ticket).refused; got != callwire.RefusedNotWaiting {
				t.Errorf("claim of a call that nobody waits for: %v", got)
			}
			until(t, "nothing is left of it", func() bool { return w.gateway.Entries() == 0 })
		})
	}
}

// The function reads nothing, so the gateway stops reading. What it has left of the body fits into the
// socket's buffer: otherwise the end of the connection cannot be seen.
func TestACallWithoutAReaderIsCancelledWhenItsClientLeaves(t *testing.T) {
	w := newHarnessWith(t, func(_ *gateway.Config, d *gateway.Deps) { d.Left = serve.ClientLeft })
	fn := newFunction("default", "hello", time.Minute)
	fn.Spec.Calls.OnClientDisconnect = v1alpha1.OnClientDisconnectCancel
	w.catalog.Put(rollout.Alone(fn))
	r := w.dial()
	r.send("POST /function/hello/ HTTP/1.1\r\nHost: h\r\nContent-Length: 150000\r\n\r\n" + strings.Repeat("x", 150_000))
	i := w.take()
	for sent := 0; sent < callwire.InitialWindow; { // until the gateway may send no more
		f, err := i.next()
		if err != nil || f.Kind != callwire.KindBody {
			t.Fatalf("kind %d, %v", f.Kind, err)
		}
		sent += len(f.Payload)
	}
	r.conn.Close()
	until(t, "the gateway has noticed", func() bool { return w.metric(total, "code", "499", "executed", "maybe") == 1 })
	i.cancelled()
	i.fail(callwire.FailureFunctionLost, "cancelled")
	until(t, "nothing is left of it", func() bool { return w.gateway.Entries() == 0 && w.gateway.Held() == 0 })
}

// Clients that stay are not taken for such that left.
func TestM1AClientThatWaitsWithItsBodyIsServed(t *testing.T) {
	w := newHarnessWith(t, func(_ *gateway.Config, d *gateway.Deps) { d.Left = serve.ClientLeft })
	body := strings.Repeat("x", 300_000)
	for _, r := range []io.Reader{strings.NewReader(body), chunked(strings.NewReader(body))} {
		answers := w.call(w.request("POST", "/function/hello/", r))
		i := w.take()
		if u := i.read(bodyEnded); u.body.Len() != len(body) || u.aborted {
			t.Errorf("%d bytes came", u.body.Len())
		}
		i.whole(200, "")
		wrote(t, answers, 200, "yes")
	}
}

// Who hangs up makes no room for more: what he began is still run.
func TestM2ACallIsHeldAgainstItsNamespaceUntilItEnds(t *testing.T) {
	w := newHarness(t)
	ctx, cancel := context.WithCancel(t.Context())
	answers := w.call(w.get("/function/hello/").WithContext(ctx))
	i := w.take()
	cancel()
	receive(t, answers, "the end of the call")
	until(t, "the gateway has noticed", func() bool { return w.metric("windlass_gateway_invocations_total") == 1 })
	if held := w.gateway.Held(); held != 1 {
		t.Errorf("%d calls are held, want the one that runs", held)
	}
	i.whole(200, "")
	i.ended()
	until(t, "it is held no more", func() bool { return w.gateway.Held() == 0 })
}
