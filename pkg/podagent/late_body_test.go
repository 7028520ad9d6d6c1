package podagent

import (
	"context"
	"testing"
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

// The next instance would have no more time for it.
func TestAnEventThatDoesNotComeInTimeCostsNoInstance(t *testing.T) {
	for name, room := range map[string]int64{"its client stalls": 64 << 20, "other events leave it no room": 2 << 20} {
		t.Run(name, func(t *testing.T) {
			withHarness(t, nil, func(w *harness) {
				function := lambda.New(lambda.Config{Namespace: "default", Function: "f", Concurrency: 2, BufferBytes: room})
				w.agent.deps.Adapter = lambdaAdapter{w.adapter, function}
				p := w.begin()
				first, second := w.upload(p, "a", time.Minute), w.upload(p, "b", time.Second)
				second.hear("end TOO_LATE")
				second.hearEnd()
				p.hear("pull 1 done b")
				w.runs()
				p.hearNothing()
				first.hear("end TOO_LATE")
				p.hear("pull 1 done a")
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
