package podagent

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/windlass-dev/windlass/internal/callwire"
	"github.com/windlass-dev/windlass/pkg/podagent/adapter"
	"github.com/windlass-dev/windlass/pkg/podagent/adapter/lambda"
)

// lambdaAdapter is ready when the test says so, and runs calls as a Lambda function.
type lambdaAdapter struct {
	*fakeAdapter
	calls *lambda.Adapter
}

func (a lambdaAdapter) Invoke(ctx context.Context, call *adapter.Call, w adapter.ResultWriter) error {
	return a.calls.Invoke(ctx, call, w)
}

// A client that stalls would do the same to the next instance, which may have room where this one has none.
func TestAnEventThatDoesNotComeInTimeCostsNoInstance(t *testing.T) {
	for name, tc := range map[string]struct {
		room int64
		said string
	}{
		"its client stalls":             {64 << 20, "end TOO_LATE"},
		"other events leave it no room": {2 << 20, "release"},
	} {
		t.Run(name, func(t *testing.T) {
			withHarness(t, nil, func(w *harness) {
				function := lambda.New(lambda.Config{Namespace: "default", Function: "f", Concurrency: 2, BufferBytes: tc.room})
				w.agent.deps.Adapter = lambdaAdapter{w.adapter, function}
				p := w.begin()
				first := w.upload(p, "a", time.Minute)
				synctest.Wait() // it has the room
				second := w.upload(p, "b", time.Second)
				second.hear(tc.said)
				second.hearEnd()
				p.hear("pull 1 done b after 0s")
				w.runs()
				p.hearNothing()
				first.hear("end TOO_LATE")
				p.hear("pull 1 done a after 0s")
				p.retire("test")
				w.ended(nil)
			})
		})
	}
}

// upload is a call that has so much time, and of whose body a part comes and nothing more.
func (w *harness) upload(p *pulls, id string, time time.Duration) *claimed {
	w.t.Helper()
	p.ticket(id)
	c := w.claim()
	c.grant(callwire.Call{Method: "POST", ContentLength: -1, Remaining: time})
	c.body("[1,")
	return c
}
