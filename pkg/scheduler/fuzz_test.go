package scheduler

import (
	"slices"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"

	agentwire "github.com/windlass-dev/windlass/api/wire/agent/v1alpha1"
)

// FuzzPull lets one instance say anything. The others of its function are served
// as ever.
func FuzzPull(f *testing.F) {
	for _, request := range []*agentwire.PullRequest{
		{Kind: &agentwire.PullRequest_Pull{Pull: &agentwire.Pull{Credits: 1 << 31, Done: []*agentwire.Done{{ExecNs: -1}, {InvocationId: make([]byte, 16), ExecNs: 1 << 62}}}}},
		{Kind: &agentwire.PullRequest_Leave{Leave: &agentwire.LeaveRequest{IdleNs: 1 << 62}}},
		{Kind: &agentwire.PullRequest_Goodbye{Goodbye: &agentwire.Goodbye{Reason: agentwire.Goodbye_REASON_CALL_BROKEN, Detail: "a"}}},
		{Kind: &agentwire.PullRequest_Hello{Hello: &agentwire.Hello{}}},
		{},
	} {
		text, err := proto.Marshal(request)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(slices.Concat([]byte{byte(len(text))}, text, []byte{byte(len(text))}, text))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		inHarness(t, defaults(), func(w *harness) {
			fn, g := w.put("f", minInstances(2)), w.gateway("g:1")
			w.ticks(1)
			specs := w.started(fn, 2)
			liar, honest := w.ready(specs[0]), w.ready(specs[1])
			for len(data) > 0 {
				n := min(int(data[0]), len(data)-1)
				request := &agentwire.PullRequest{}
				if proto.Unmarshal(data[1:1+n], request) == nil {
					liar.send(request)
				}
				data = data[1+n:]
			}
			w.after(time.Second)
			if mean := w.scheduler.shell.lookup(string(fn.UID)).means().Execution; mean < 0 || mean > fn.Spec.Template.Timeout.Duration {
				t.Errorf("the mean is %v", mean)
			}
			liar.cut()
			// What the liar held goes to the other.
			g.offer(fn, 1)
			w.after(time.Second)
			if heard := honest.heard(); len(heard) == 0 {
				t.Error("the honest instance got nothing")
			}
		})
	})
}
