package podagent

import (
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/windlass-dev/windlass/pkg/podagent/agentenv"
)

var errNoStart = errors.New("no such file")

// What the core decides about time, for tests that see it from outside.
const (
	leastPatience = time.Minute
	longestPause  = 2 * time.Second
	lastWords     = 2 * time.Second
)

func TestAgentAsksForWorkOnlyWhenTheFunctionIsReady(t *testing.T) {
	withHarness(t, nil, func(w *harness) {
		w.run()
		p := w.stream()
		p.hear(helloText)
		synctest.Wait()
		p.hearNothing()
		w.adapter.ready <- nil
		p.hear("pull 2")
		p.retire("test")
		p.hear("goodbye DONE: test", "hung up")
		w.ended(nil)
	})
}

func TestLostStreamIsReplacedAndCallsGoOn(t *testing.T) {
	withHarness(t, nil, func(w *harness) {
		p := w.begin()
		claim, call := w.call(p, "a")
		w.conn.takeDown()
		p.lose()
		w.runs()
		w.conn.putUp()
		p = w.stream()
		p.hear(helloText, "pull 1")
		call.hello()
		claim.hear(`head 200 cold whole "hello"`)
		claim.hearEnd()
		p.hear("pull 1 done a")
		p.retire("test")
		p.hear("goodbye DONE")
		w.ended(nil)
	})
}

func TestCallThatEndsWhileThereIsNoStreamIsAskedForByTheNext(t *testing.T) {
	withHarness(t, nil, func(w *harness) {
		p := w.begin()
		claim, call := w.call(p, "a")
		w.conn.takeDown()
		p.lose()
		synctest.Wait()
		call.hello()
		claim.hear(`head 200 cold whole "hello"`)
		claim.hearEnd()
		w.runs()
		w.conn.putUp()
		p = w.stream()
		p.hear(helloText, "pull 2")
		p.retire("test")
		w.ended(nil)
	})
}

func TestUnknownInstanceFinishesItsCallsAndEnds(t *testing.T) {
	for _, code := range []codes.Code{codes.NotFound, codes.Unauthenticated} {
		t.Run(code.String(), func(t *testing.T) {
			withHarness(t, nil, func(w *harness) {
				p := w.begin()
				claim, call := w.call(p, "a")
				p.end <- status.Error(code, "no such instance")
				w.runs()
				call.hello()
				claim.hear(`head 200 cold whole "hello"`)
				claim.hearEnd()
				w.ended(nil)
			})
		})
	}
}

func TestEndWhileTheFunctionStartsWaitsForNothing(t *testing.T) {
	for name, end := range map[string]func(*pulls){
		"unknown": func(p *pulls) { p.end <- status.Error(codes.NotFound, "no such instance") },
		"retired": func(p *pulls) { p.retire("the revision is not in use any more") },
	} {
		t.Run(name, func(t *testing.T) {
			withHarness(t, nil, func(w *harness) {
				begun := time.Now()
				w.run()
				end(w.stream())
				w.ended(nil)
				if took := time.Since(begun); took != 0 {
					t.Errorf("ended after %v, want at once", took)
				}
			})
		})
	}
}

func TestSchedulerThatCannotBeReachedIsGivenUp(t *testing.T) {
	withHarness(t, nil, func(w *harness) {
		w.conn.takeDown()
		begun := time.Now()
		w.run()
		w.adapter.ready <- nil
		w.ended(nil)
		if took, want := time.Since(begun), 10*time.Minute+10*time.Second; took != want {
			t.Errorf("gave up after %v, want %v", took, want)
		}
		if n := strings.Count(w.warnings.String(), "no stream to the scheduler"); n != 1 {
			t.Errorf("its log says %d times that the scheduler does not answer:\n%s", n, &w.warnings)
		}
	})
}

func TestSchedulerThatRefusesIsGivenUp(t *testing.T) {
	withHarness(t, func(c *agentenv.Config) { c.IdleTimeout, c.StartupTimeout = 1, time.Hour }, func(w *harness) {
		w.scheduler.deaf = true
		begun := time.Now()
		w.run()
		for {
			select {
			case p := <-w.scheduler.streams:
				p.lose()
				continue
			case err := <-w.ran:
				if err != nil {
					t.Error(err)
				}
			}
			break
		}
		if took := time.Since(begun); took < leastPatience || took > leastPatience+longestPause {
			t.Errorf("gave up after %v, want %v", took, leastPatience)
		}
	})
}

func TestStreamThatStoodWithoutAReplyCounts(t *testing.T) {
	withHarness(t, func(c *agentenv.Config) { c.StartupTimeout = 3 * time.Hour }, func(w *harness) {
		w.run()
		p := w.stream()
		p.hear(helloText)
		time.Sleep(time.Hour)
		p.lose()
		p = w.stream()
		p.hear(helloText)
		p.retire("test")
		w.ended(nil)
	})
}

func TestFunctionThatDoesNotStartIsToldAndReturned(t *testing.T) {
	withHarness(t, nil, func(w *harness) {
		w.run()
		p := w.stream()
		p.hear(helloText)
		w.adapter.ready <- errNoStart
		p.hear("goodbye START_FAILED: no such file", "hung up")
		p.hearEnd()
		w.ended(errNoStart)
	})
}

func TestStartFailureIsToldEvenIfItComesBeforeTheConnection(t *testing.T) {
	withHarness(t, nil, func(w *harness) {
		w.conn.takeDown()
		w.run()
		w.adapter.ready <- errNoStart
		w.runs()
		w.conn.putUp()
		p := w.stream()
		p.hear(helloText, "goodbye START_FAILED: no such file", "hung up")
		w.ended(errNoStart)
	})
}

func TestGoodbyeThatWasLostIsSaidAgain(t *testing.T) {
	withHarness(t, nil, func(w *harness) {
		p := w.begin()
		p.dying.Store(true) // before it has understood
		w.signal(errSignal)
		p.hear("goodbye STOPPED: the agent received a stop signal: SIGTERM")
		p = w.stream()
		p.hear(helloText, "goodbye STOPPED", "hung up")
		p.hearEnd()
		w.ended(nil)
	})
}

func TestNobodyWaitsForeverForASchedulerToHear(t *testing.T) {
	withHarness(t, nil, func(w *harness) {
		p := w.begin()
		w.conn.takeDown()
		p.lose()
		w.runs()
		begun := time.Now()
		w.signal(errSignal)
		w.ended(nil)
		if took := time.Since(begun); took != lastWords {
			t.Errorf("ended after %v, want %v", took, lastWords)
		}
	})
}

func TestStopBeforeTheFunctionIsReadySaysNoGoodbye(t *testing.T) {
	withHarness(t, nil, func(w *harness) {
		w.run()
		p := w.stream()
		p.hear(helloText)
		w.signal(errSignal)
		p.hear("hung up")
		w.ended(nil)
	})
}

func TestStopBeforeAnythingEndsAtOnce(t *testing.T) {
	withHarness(t, nil, func(w *harness) {
		w.conn.takeDown()
		w.run()
		w.runs()
		begun := time.Now()
		w.signal(errSignal)
		w.ended(nil)
		if took := time.Since(begun); took != 0 {
			t.Errorf("ended after %v, want at once", took)
		}
	})
}

func TestStopLetsCallsFinish(t *testing.T) {
	withHarness(t, nil, func(w *harness) {
		p := w.begin()
		claim, call := w.call(p, "a")
		w.signal(errSignal)
		p.hear("goodbye STOPPED: the agent received a stop signal: SIGTERM")
		p.ticket("b")
		w.runs()
		if len(w.gateway.claims) != 0 {
			t.Error("claimed after goodbye")
		}
		p.hearNothing()
		goAway := claim.deafen()
		call.hello()
		w.runs() // until the gateway has the result
		goAway()
		p.hear("hung up")
		w.ended(nil)
	})
}

func TestRetiredInstanceFinishesItsCallsOnly(t *testing.T) {
	withHarness(t, nil, func(w *harness) {
		p := w.begin()
		claim, call := w.call(p, "a")
		p.retire("the revision is not in use any more")
		p.hear("goodbye DONE: the revision is not in use any more")
		p.ticket("b")
		p.retire("again")
		w.runs()
		p.hearNothing()
		call.hello()
		claim.hear(`head 200 cold whole "hello"`)
		claim.hearEnd()
		p.hear("hung up")
		w.ended(nil)
	})
}

func TestLeavingIsToldToANewSchedulerToo(t *testing.T) {
	withHarness(t, nil, func(w *harness) {
		p := w.begin()
		claim, call := w.call(p, "a")
		p.retire("the revision is not in use any more")
		p.lose()
		p = w.stream()
		p.hear(helloText, "goodbye DONE: the revision is not in use any more")
		call.hello()
		claim.hear(`head 200 cold whole "hello"`)
		claim.hearEnd()
		p.hear("hung up")
		w.ended(nil)
	})
}
