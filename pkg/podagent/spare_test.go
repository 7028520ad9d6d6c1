package podagent

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	agentwire "github.com/windlass-dev/windlass/api/wire/agent/v1alpha1"
	"github.com/windlass-dev/windlass/pkg/podagent/adapter"
	"github.com/windlass-dev/windlass/pkg/podagent/agentenv"
)

// asSpare makes the configuration that of a spare instance.
func asSpare(c *agentenv.Config) {
	*c = agentenv.Config{
		Spare: true, Owner: "owner:1", Token: "secret", Protocol: agentenv.ProtocolLambdaRuntime,
		StartupTimeout: time.Minute,
	}
}

const helloSpareText = `hello spare ""/ "" secret`

func wireAssignment() *agentwire.Assignment {
	return &agentwire.Assignment{
		FunctionUid: "uid", Function: "default/f", Revision: "3", Cid: "cid", Concurrency: 2,
		StartupTimeoutNs: int64(10 * time.Second), BackoffAfterNs: int64(10 * time.Second), IdleTimeoutNs: int64(10 * time.Minute),
		Variables: []*agentwire.Variable{{Name: "A", Value: "1"}, {Name: "A", Value: "2"}},
		Files:     []*agentwire.File{{Path: "app.py", Content: []byte("x")}},
	}
}

func (p *pulls) assign(to *agentwire.Assignment) {
	p.t.Helper()
	p.say(&agentwire.PullReply{Kind: &agentwire.PullReply_Assignment{Assignment: to}})
}

// beginSpare runs an agent whose runtime waits for its assignment.
func (w *harness) beginSpare() *pulls {
	w.t.Helper()
	w.run()
	w.adapter.waits <- nil
	p := w.stream()
	p.hear(helloSpareText)
	return p
}

func TestASpareInstanceIsAssignedAndServes(t *testing.T) {
	withHarness(t, asSpare, func(w *harness) {
		w.run()
		synctest.Wait()
		if len(w.scheduler.streams) > 0 {
			t.Fatal("it spoke before its runtime was there")
		}
		w.adapter.waits <- nil
		p := w.stream()
		p.hear(helloSpareText)
		time.Sleep(24 * time.Hour)
		p.hearNothing()
		p.assign(wireAssignment())

		p = w.stream()
		p.hear(helloText)
		want := adapter.Assignment{
			Namespace: "default", Function: "f", Concurrency: 2,
			Variables: []adapter.Variable{{Name: "A", Value: "1"}, {Name: "A", Value: "2"}},
			Files:     []adapter.File{{Path: "app.py", Content: []byte("x")}},
		}
		if diff := cmp.Diff(want, <-w.adapter.assigned); diff != "" {
			t.Errorf("the runtime was given (-want +got):\n%s", diff)
		}
		p.hearNothing() // it loads
		w.adapter.ready <- nil
		p.hear("pull 2")
		claim, call := w.call(p, "a")
		call.hello()
		claim.hear(`head 200 cold whole "hello"`)
		claim.hearEnd()
		p.hear("pull 1 done a")

		p.assign(&agentwire.Assignment{FunctionUid: "other"})
		p.lose()
		p = w.stream()
		p.hear(helloText, "pull 2")
		if len(w.adapter.assigned) > 0 {
			t.Error("it was assigned twice")
		}
		p.retire("enough")
		p.hear("goodbye DONE: enough", "hung up")
		w.ended(nil)
	})
}

func TestASpareInstanceThatIsNotWantedLeaves(t *testing.T) {
	withHarness(t, asSpare, func(w *harness) {
		p := w.beginSpare()
		p.retire("too many")
		p.hear("goodbye DONE: too many", "hung up")
		w.ended(nil)
	})
	withHarness(t, asSpare, func(w *harness) {
		p := w.beginSpare()
		w.signal(errSignal)
		p.hear("hung up")
		w.ended(nil)
	})
	withHarness(t, asSpare, func(w *harness) { // before its runtime is there
		w.run()
		synctest.Wait()
		w.signal(errSignal)
		w.ended(nil)
	})
}

func TestASpareInstanceWhoseSchedulerIsGoneEnds(t *testing.T) {
	withHarness(t, asSpare, func(w *harness) {
		p := w.beginSpare()
		synctest.Wait()
		w.scheduler.deaf = true
		p.lose()
		begun := time.Now()
		go func() {
			for p := range w.scheduler.streams {
				p.lose()
			}
		}()
		w.ended(nil)
		if took := time.Since(begun); took > time.Minute {
			t.Errorf("it took %v", took)
		}
		close(w.scheduler.streams)
	})
}

func TestWhatASpareInstanceCannotStartIsReported(t *testing.T) {
	oh := errors.New("no such module")
	withHarness(t, asSpare, func(w *harness) {
		w.run()
		w.adapter.waits <- oh
		w.ended(oh) // with which the program ends; whom nobody has heard of says nothing
		if len(w.scheduler.streams) > 0 {
			t.Error("it offered itself")
		}
	})
	withHarness(t, asSpare, func(w *harness) {
		w.beginSpare().assign(wireAssignment())
		p := w.stream()
		p.hear(helloText)
		w.adapter.ready <- oh
		p.hear("goodbye START_FAILED: no such module", "hung up")
		w.ended(oh)
	})
	withHarness(t, asSpare, func(w *harness) {
		w.beginSpare().assign(wireAssignment())
		p := w.stream()
		p.hear(helloText)
		begun := time.Now()
		p.hear("goodbye START_TIMED_OUT")
		if took := time.Since(begun); took < 10*time.Second || took > 11*time.Second {
			t.Errorf("after %v", took)
		}
		p.hear("hung up")
		if err := <-w.ran; err == nil {
			t.Error("Run: no error")
		}
	})
	withHarness(t, asSpare, func(w *harness) {
		bad := wireAssignment()
		bad.Files[0].Path = "/etc/passwd"
		w.beginSpare().assign(bad)
		p := w.stream()
		p.hear(helloText, `goodbye START_FAILED: adapter: the assignment's file "/etc/passwd"`, "hung up")
		if err := <-w.ran; err == nil {
			t.Error("Run: no error")
		}
	})
}
