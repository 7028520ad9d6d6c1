package podagent

import (
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/windlass-dev/windlass/internal/kerneltimer"
)

func TestIdleAgentLeavesWhenItMay(t *testing.T) {
	withHarness(t, nil, func(w *harness) {
		p := w.begin()
		p.hear("leave? idle for 10m10s")
		p.mayLeave(true, 0)
		p.hear("hung up") // without a goodbye: the scheduler knows
		w.ended(nil)
	})
}

func TestConnectionsThatNothingUsesAreClosedAfterAMinute(t *testing.T) {
	withHarness(t, nil, func(w *harness) {
		p := w.begin()
		claim, call := w.call(p, "a")
		time.Sleep(2 * time.Minute)
		call.hello()
		claim.hear(`head 200 cold whole "hello"`)
		p.hear("pull 1 done a")
		time.Sleep(time.Minute - 1)
		synctest.Wait()
		select {
		case <-claim.over:
			t.Error("closed too early")
		default:
		}
		claim, call = w.call(p, "b")
		call.hello()
		claim.hear(`head 200 whole "hello"`)
		p.hear("pull 1 done b")
		ended := time.Now()
		<-claim.over
		if took := time.Since(ended); took != time.Minute {
			t.Errorf("closed after %v", took)
		}
		if n := w.gateway.dialled(); n != 1 {
			t.Errorf("dialled %d times", n)
		}
		p.retire("test")
		w.ended(nil)
	})
}

func TestAgentThatMustStayAsksAgainWhenItWasTold(t *testing.T) {
	withHarness(t, nil, func(w *harness) {
		p := w.begin()
		p.hear("leave? idle for 10m10s")
		p.mayLeave(false, time.Hour)
		p.hear("leave? idle for 1h10m10s")
		p.mayLeave(false, 1)
		p.hear("leave? idle for 1h10m11s") // not in a frenzy
		p.mayLeave(true, 0)
		w.ended(nil)
	})
}

func TestCallBetweenQuestionAndAnswerKeepsTheAgent(t *testing.T) {
	withHarness(t, nil, func(w *harness) {
		p := w.begin()
		p.hear("leave? idle for 10m10s")
		claim, call := w.call(p, "a")
		p.mayLeave(false, time.Minute)
		time.Sleep(2 * time.Hour)
		call.hello()
		claim.hear(`head 200 cold whole "hello"`)
		claim.hearEnd()
		p.hear("pull 1 done a", "leave? idle for 10m10s")
		p.mayLeave(true, 0)
		w.ended(nil)
	})
}

func TestLeaveThatIsGrantedWhileACallRunsWaitsForIt(t *testing.T) {
	withHarness(t, nil, func(w *harness) {
		p := w.begin()
		p.hear("leave? idle for 10m10s")
		claim, call := w.call(p, "a")
		p.mayLeave(true, 0)
		w.runs()
		call.hello()
		claim.hear(`head 200 cold whole "hello"`)
		claim.hearEnd()
		p.hear("hung up")
		w.ended(nil)
	})
}

func TestAgentAsksANewSchedulerWhetherItMayLeave(t *testing.T) {
	withHarness(t, nil, func(w *harness) {
		p := w.begin()
		p.hear("leave? idle for 10m10s")
		p.lose()
		p = w.stream()
		p.hear(helloText, "pull 2", "leave? idle for 10m10.01s")
		p.mayLeave(true, 0)
		w.ended(nil)
	})
}

func TestAnswerAfterTheGoodbyeStartsNoTimer(t *testing.T) {
	withHarness(t, nil, func(w *harness) {
		var due atomic.Int64
		w.agent.deps.NewTimer = func(wake func()) kerneltimer.Waker {
			return kerneltimer.Go(func() {
				due.Add(1)
				wake()
			})
		}
		p := w.begin()
		p.hear("leave? idle for 10m10s")
		p.retire("test")
		p.mayLeave(false, 1)
		p.hear("goodbye DONE", "hung up")
		w.ended(nil)
		before := due.Load()
		if time.Sleep(24 * time.Hour); due.Load() > before {
			t.Error("the timer runs after the end")
		}
	})
}
