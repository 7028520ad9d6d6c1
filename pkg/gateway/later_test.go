package gateway_test

import (
	"testing"

	agentwire "github.com/windlass-dev/windlass/api/wire/agent/v1alpha1"
	"github.com/windlass-dev/windlass/internal/wiretest"
	"github.com/windlass-dev/windlass/pkg/invocation"
)

// FuzzLaterAgent has a later agent answer a call and say more at moments that the data
// chooses. The client must get the answer.
func FuzzLaterAgent(f *testing.F) {
	f.Add([]byte{0, 1, 2})
	f.Add([]byte{2, 2, 0, 0})
	f.Fuzz(func(t *testing.T, moments []byte) {
		w := newHarness(t)
		answers := w.call(w.get("/function/hello/"))
		i := w.claim(w.scheduler.ticket())
		more := func(moment byte) {
			for _, m := range moments[:min(len(moments), 64)] {
				if m%3 == moment {
					i.send(wiretest.Beyond(&agentwire.AttemptRequest{}))
				}
			}
		}
		more(0)
		i.send(wiretest.Newer(&agentwire.AttemptRequest{Kind: &agentwire.AttemptRequest_Head{Head: &agentwire.ResultHead{Status: 200}}}))
		more(1)
		i.body("hi")
		more(2)
		i.send(wiretest.Newer(&agentwire.AttemptRequest{Kind: &agentwire.AttemptRequest_End{End: &agentwire.ResultEnd{}}}))
		if a := wrote(t, answers, 200, invocation.ExecutedYes); a.body != "hi" {
			t.Errorf("answered %q", a.body)
		}
		i.ended()
	})
}
