package gateway_test

import (
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/windlass-dev/windlass/pkg/invocation"
)

// grace is how long bodies may stand still here.
const grace = time.Second

func TestASlowBodyFreesTheInstance(t *testing.T) {
	t.Parallel()
	eachProtocol(t, func(w *harness, client *http.Client) {
		w.gateway.LeaveGrace(grace)
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
	})
}

// Client and function may talk with pauses, once the function has begun to.
func TestABodyMayPauseOnceTheFunctionAnswers(t *testing.T) {
	t.Parallel()
	eachProtocol(t, func(w *harness, client *http.Client) {
		w.gateway.LeaveGrace(grace)
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
	})
}
