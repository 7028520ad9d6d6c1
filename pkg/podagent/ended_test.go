package podagent

import (
	"context"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/windlass-dev/windlass/internal/callwire"
	"github.com/windlass-dev/windlass/pkg/podagent/adapter"
)

var exited = FunctionEnd{How: "the function exited with status 3", LastLines: []string{"one", "two"}}

const exitedText = "the function exited with status 3 in the middle of the call; its last log lines:\none\ntwo"

// hearLost expects that the call failed with its function, and this detail.
func (c *claimed) hearLost(detail string) {
	c.t.Helper()
	end, err := callwire.ParseEnd(<-c.said)
	if err != nil || end.Failure != callwire.FailureFunctionLost || end.Detail != detail {
		c.t.Fatalf("heard %v, %v, want %q", end, err, detail)
	}
}

func TestA3AFunctionThatEndsFailsItsCallsAtOnce(t *testing.T) {
	withHarness(t, nil, func(w *harness) {
		p := w.begin()
		c, call := w.call(p, "a")
		w.ends <- exited
		// Nothing but the end of the function ends this call: its time is not over.
		<-call.ctx.Done()
		call.end <- adapter.Ended(call.ctx, call.Call)
		c.hearLost(exitedText)
		c.hearEnd()
		p.hear("goodbye FUNCTION_ENDED: the function exited with status 3", "hung up")
		p.end <- nil
		w.ended(nil)
	})
}

// As the adapter of the Lambda Runtime API says of a call that nobody has fetched: it names why the
// call was cut.
func TestACallThatAFunctionThatEndedNeverSawMayRunElsewhere(t *testing.T) {
	withHarness(t, nil, func(w *harness) {
		p := w.begin()
		c, call := w.call(p, "a")
		w.ends <- exited
		<-call.ctx.Done()
		call.end <- fmt.Errorf("%w: %w", adapter.ErrNotStarted, context.Cause(call.ctx))
		c.hear("release")
		c.hearEnd()
		p.hear("goodbye FUNCTION_ENDED: the function exited with status 3", "hung up")
		p.end <- nil
		w.ended(nil)
	})
}

func TestA3WhatASchedulerTellsOfTheFunctionsEndFailsItsCalls(t *testing.T) {
	for name, before := range map[string]func(w *harness, p *pulls){
		"of an instance that works": func(*harness, *pulls) {},
		// As the pod of a function that ended is deleted, SIGTERM may be first.
		"of one that is told to stop": func(w *harness, p *pulls) {
			w.signal(errSignal)
			p.hear("goodbye STOPPED: the agent received a stop signal: SIGTERM")
		},
	} {
		t.Run(name, func(t *testing.T) {
			withHarness(t, nil, func(w *harness) {
				p := w.begin()
				c, call := w.call(p, "a")
				before(w, p)
				p.ends(exited.How, exited.LastLines...)
				p.ends("something else") // which is no news
				<-call.ctx.Done()
				call.end <- adapter.Ended(call.ctx, call.Call)
				c.hearLost(exitedText)
				c.hearEnd()
				p.end <- nil
				w.ended(nil)
			})
		})
	}
}

func TestA3ACallThatWasBrokenOffIsExplainedByTheEndOfTheFunction(t *testing.T) {
	withHarness(t, nil, func(w *harness) {
		p := w.begin()
		c, call := w.call(p, "a")
		call.end <- fmt.Errorf("%w: %w", adapter.ErrFunctionLost, io.EOF)
		w.ends <- exited
		c.hearLost(exitedText)
		c.hearEnd()
		p.hear("goodbye FUNCTION_ENDED: the function exited with status 3", "hung up")
		p.end <- nil
		w.ended(nil)
	})
}

func TestACallThatAFunctionBrokeOffThatLivesOnIsNotHeldForLong(t *testing.T) {
	withHarness(t, nil, func(w *harness) {
		p := w.begin()
		c, call := w.call(p, "a")
		call.end <- fmt.Errorf("%w: %w", adapter.ErrFunctionLost, io.EOF)
		c.hearLost(adapter.ErrFunctionLost.Error() + ": EOF")
		c.hearEnd()
		p.hear("goodbye CALL_BROKEN")
		p.hear("hung up")
		p.end <- nil
		w.ended(nil)
	})
}

// What a scheduler says on a stream that the agent has just left is not heard.
func TestAnAuditFindsAnEndOfTheFunctionThatWasNotHeard(t *testing.T) {
	withHarness(t, nil, func(w *harness) {
		p := w.begin()
		c, call := w.call(p, "a")
		w.agent.function.set(exited)
		<-call.ctx.Done()
		call.end <- adapter.Ended(call.ctx, call.Call)
		c.hearLost(exitedText)
		c.hearEnd()
		p.hear("goodbye FUNCTION_ENDED: the function exited with status 3", "hung up")
		p.end <- nil
		w.ended(nil)
	})
}

func TestEndedTellsWhatTheContextKnowsOfTheFunction(t *testing.T) {
	ctx, cut := context.WithCancelCause(context.Background())
	cut(&functionLost{exited})
	if got := adapter.Ended(ctx, &adapter.Call{}); !strings.HasPrefix(got.Error(), exited.How) {
		t.Errorf("got %v", got)
	}
}
