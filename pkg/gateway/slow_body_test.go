package gateway_test

import (
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/windlass-dev/windlass/api/v1alpha1"
	"github.com/windlass-dev/windlass/pkg/gateway"
	"github.com/windlass-dev/windlass/pkg/invocation"
	"github.com/windlass-dev/windlass/pkg/rollout"
)

// grace is how long bodies may stand still here.
const grace = time.Second

func TestASlowBodyFreesTheInstance(t *testing.T) {
	t.Parallel()
	eachProtocol(t, func(w *harness, client *http.Client) {
		body, write := io.Pipe()
		defer write.Close()
		answers := w.callWith(client, w.request("POST", "/function/hello/", body))
		i := w.take()
		_, _ = io.WriteString(write, "and then nothing")
		u := i.read(func(u *upload) bool { return u.cancelled })
		if u.body.String() != "and then nothing" || !u.aborted || !u.cancelled {
			w.Errorf("the instance got %q, aborted %v, cancelled %v", u.body.String(), u.aborted, u.cancelled)
		}
		i.die()
		problem(w.T, wrote(w.T, answers, 502, invocation.ExecutedMaybe), "RequestCut")
		until(w.T, "nothing is held", func() bool { return w.gateway.Held() == 0 })
	}, gateway.LeaveGrace(grace))
}

// The client of a stream of gRPC waits for news, and the function has none: it sends no head until it
// has. A function of another protocol has no such streams.
func TestAStreamOfGRPCMayPauseFromTheBeginning(t *testing.T) {
	t.Parallel()
	for protocol, pauses := range map[v1alpha1.Protocol]bool{v1alpha1.ProtocolHTTP: true, v1alpha1.ProtocolLambdaRuntime: false} {
		t.Run(string(protocol), func(t *testing.T) {
			w := newHarness(t, gateway.LeaveGrace(time.Millisecond))
			fn := newFunction("default", "watch", time.Minute)
			fn.Spec.Template.Protocol = protocol
			w.catalog.Put(rollout.Alone(fn))
			body, write := io.Pipe()
			defer write.Close()
			r := w.request("POST", "/function/watch/shop.Cart/Watch", body)
			r.Header.Set("Content-Type", "application/grpc+proto")
			answers := w.callWith(w.http2, r)
			i := w.take()
			if !pauses {
				i.read(func(u *upload) bool { return u.cancelled })
				i.die()
				problem(t, wrote(t, answers, 502, invocation.ExecutedMaybe), "RequestCut")
				return
			}
			_, _ = io.WriteString(write, "watch")
			i.read(func(u *upload) bool { return u.body.Len() == 5 })
			<-time.After(50 * time.Millisecond)
			_, _ = io.WriteString(write, "more")
			if u := i.read(func(u *upload) bool { return u.body.Len() == 4 || u.aborted }); u.aborted || u.cancelled {
				t.Fatalf("the stream was cut off after a pause: cancelled %t", u.cancelled)
			}
			_ = write.Close()
			i.read(bodyEnded)
			i.whole(200, "news")
			wrote(t, answers, 200, invocation.ExecutedYes)
		})
	}
}

// Client and function may talk with pauses, once the function has begun to.
func TestABodyMayPauseOnceTheFunctionAnswers(t *testing.T) {
	t.Parallel()
	eachProtocol(t, func(w *harness, client *http.Client) {
		body, write := io.Pipe()
		answers := w.callWith(client, w.request("POST", "/function/hello/", body))
		i := w.take()
		_, _ = io.WriteString(write, "ping")
		i.read(func(u *upload) bool { return u.body.Len() == 4 })
		i.head(200)
		<-time.After(grace * 5 / 4)
		_, _ = io.WriteString(write, strings.Repeat("x", 100))
		_ = write.Close()
		if u := i.read(func(u *upload) bool { return u.whole || u.aborted }); u.body.Len() != 100 || !u.whole {
			w.Errorf("after the pause came %d bytes, whole %v", u.body.Len(), u.whole)
		}
		i.body("pong")
		i.end()
		if a := wrote(w.T, answers, 200, invocation.ExecutedYes); a.body != "pong" {
			w.Errorf("answered %q", a.body)
		}
	}, gateway.LeaveGrace(grace))
}
