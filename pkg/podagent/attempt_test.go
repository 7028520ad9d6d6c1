package podagent

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	agentwire "github.com/windlass-dev/windlass/api/wire/agent/v1alpha1"
	"github.com/windlass-dev/windlass/internal/callwire"
	"github.com/windlass-dev/windlass/pkg/invocation"
	"github.com/windlass-dev/windlass/pkg/podagent/adapter"
)

func TestClaimRepeatsWhatTheTicketSays(t *testing.T) {
	withHarness(t, nil, func(w *harness) {
		p := w.begin()
		p.ticket("a")
		c := w.claim()
		if got := fmt.Sprintf("%s, %s, %s", tellID(c.claim.Invocation[:]), tellID(c.claim.Token[:]), c.hello.CID); got != "a, token of a, cid" {
			t.Errorf("claimed with %s", got)
		}
		c.refuse()
		p.retire("test")
		w.ended(nil)
	})
}

func TestFunctionIsNotCalledWithoutAGrant(t *testing.T) {
	for name, tc := range map[string]struct {
		answer func(*claimed)
		done   string
	}{
		"refused":      {(*claimed).refuse, "done a after 0s"},
		"lost":         {(*claimed).lose, "done a after 0s unclaimed"},
		"no meaning":   {func(c *claimed) { c.bodyEnd(false) }, "done a after 0s unclaimed"},
		"another call": {func(c *claimed) { c.grant(callwire.Call{Invocation: invocation.ID{'x'}}) }, "done a after 0s unclaimed"},
		"cut off": {func(c *claimed) {
			c.write(func(b []byte) []byte { return append(b, 0, 0, 0, 1, byte(callwire.KindCall), 0, 0, 0, 0, 0, 0, 1, 255) })
		}, "done a after 0s unclaimed"},
	} {
		t.Run(name, func(t *testing.T) {
			withHarness(t, nil, func(w *harness) {
				p := w.begin()
				p.ticket("a")
				c := w.claim()
				synctest.Wait()
				if len(w.adapter.calls) != 0 {
					t.Error("called before the claim was answered")
				}
				tc.answer(c)
				p.hear("pull 1 " + tc.done)
				// The first call that is granted is the cold one.
				c, call := w.call(p, "b")
				if !strings.HasPrefix(call.ID, "6200") {
					t.Errorf("called for %s", call.ID)
				}
				call.hello()
				c.hear(`head 200 cold whole "hello"`)
				c.hearEnd()
				p.retire("test")
				w.ended(nil)
			})
		})
	}
}

// An agent that stood still finds a call whose time was over meanwhile. Another instance may run it, and
// this one, too, has done nothing wrong.
func TestACallWhoseTimeIsOverDoesNotBegin(t *testing.T) {
	withHarness(t, nil, func(w *harness) {
		p := w.begin()
		p.ticket("a")
		c := w.claim()
		c.grant(callwire.Call{Method: "GET", Whole: true, Remaining: -1})
		synctest.Wait()
		if len(w.adapter.calls) != 0 {
			t.Error("began late")
			(<-w.adapter.calls).end <- adapter.ErrNotStarted // as httpadapter says
		}
		c.hear("release")
		c.hearEnd()
		p.hear("pull 1 done a after 0s")
		c, call := w.call(p, "b")
		call.hello()
		c.hear(`head 200 whole "hello"`)
		c.hearEnd()
		p.retire("test")
		w.ended(nil)
	})
}

func TestNoMoreCallsRunThanTheConcurrency(t *testing.T) {
	withHarness(t, nil, func(w *harness) {
		p := w.begin()
		p.ticket("a", "b", "c", "d", "e")
		claims := []*claimed{w.claim(), w.claim()}
		for _, claim := range claims {
			claim.grant(callwire.Call{Whole: true})
		}
		w.runs()
		if len(w.gateway.claims) != 0 {
			t.Error("claimed more than two")
		}
		for range claims {
			(<-w.adapter.calls).hello()
		}
		for _, claim := range claims {
			<-claim.said
			p.hear("pull 1 done")
		}
		p.retire("test")
		w.ended(nil)
		if most := w.adapter.most.Load(); most != 2 {
			t.Errorf("%d calls ran at a time, want 2", most)
		}
	})
}

// A gateway ends a connection on a frame that is too large, and with it all calls there.
func TestALongErrorEndsNoOtherCallOfItsConnection(t *testing.T) {
	garbage := strings.Repeat("\xff", callwire.MaxPayload)
	for name, tc := range map[string]struct {
		err  error
		want string
	}{
		"of an answer":      {adapter.ErrBadAnswer, "end BAD_ANSWER"},
		"of an early end":   {adapter.ErrFunctionLost, "end FUNCTION_LOST"},
		"of a call unbegun": {adapter.ErrNotStarted, "release"},
	} {
		t.Run(name, func(t *testing.T) {
			withHarness(t, nil, func(w *harness) {
				p := w.begin()
				c, call := w.call(p, "a")
				d, other := w.call(p, "b")
				call.end <- fmt.Errorf("%w: %s", tc.err, garbage)
				c.hear(tc.want)
				c.hearEnd()
				other.hello()
				d.hear(`head 200 whole "hello"`)
				d.hearEnd()
				p.hear("goodbye", "hung up")
				p.end <- nil
				w.ended(nil)
				if w.warnings.Len() > 32<<10 {
					t.Errorf("the log has %d bytes", w.warnings.Len())
				}
			})
		})
	}
}

func TestExecutionTimeIsReported(t *testing.T) {
	withHarness(t, nil, func(w *harness) {
		p := w.begin()
		claim, call := w.call(p, "a")
		time.Sleep(5 * time.Millisecond)
		call.hello()
		head, err := callwire.ParseHead(<-claim.said)
		if err != nil || head.Exec != 5*time.Millisecond {
			t.Errorf("the head says %v, %v", head.Exec, err)
		}
		claim.hearEnd()
		p.hear("pull 1 done a after 5ms")
		p.retire("test")
		w.ended(nil)
	})
}

func TestAnswersTravelAsSmallOrLargeOnesDo(t *testing.T) {
	big := strings.Repeat("x", callwire.WholeBody)
	cases := map[string]struct {
		method string
		head   adapter.Head
		parts  []string
		want   []string
	}{
		"small":                   {"GET", adapter.Head{Status: 201, ContentLength: 4}, []string{"ab", "cd"}, []string{`head 201 cold whole "abcd"`}},
		"small, with an error":    {"GET", adapter.Head{Status: 500, ContentLength: 2, FunctionError: "Oops"}, []string{"ab"}, []string{`head 500 cold error Oops whole "ab"`}},
		"empty":                   {"GET", adapter.Head{Status: 200}, nil, []string{`head 200 cold whole ""`}},
		"no content":              {"GET", adapter.Head{Status: 204, ContentLength: -1}, nil, []string{`head 204 cold whole ""`}},
		"not modified":            {"GET", adapter.Head{Status: 304, ContentLength: -1}, nil, []string{`head 304 cold whole ""`}},
		"M8: HEAD":                {"HEAD", adapter.Head{Status: 200, ContentLength: 1 << 30}, nil, []string{`head 200 cold promises 1073741824 whole ""`}},
		"just small":              {"GET", adapter.Head{Status: 200, ContentLength: callwire.WholeBody}, []string{big}, []string{"head 200 cold whole of 65536 bytes"}},
		"M8: large":               {"GET", adapter.Head{Status: 200, ContentLength: callwire.WholeBody + 2}, []string{big, "yz"}, []string{"head 200 cold promises 65538", "body of 32768 bytes", "body of 32768 bytes", `body "yz"`, "end"}},
		"length unknown":          {"GET", adapter.Head{Status: 200, ContentLength: -1}, []string{"a", "", "b"}, []string{"head 200 cold", `body "a"`, `body "b"`, "end"}},
		"length unknown, empty":   {"GET", adapter.Head{Status: 200, ContentLength: -1}, nil, []string{"head 200 cold", "end"}},
		"more than was announced": {"GET", adapter.Head{Status: 200, ContentLength: 1}, []string{"a", big[:40<<10]}, []string{"head 200 cold promises 1 whole of 40961 bytes"}},
		"more than a frame has":   {"GET", adapter.Head{Status: 200, ContentLength: 1}, []string{big[:32<<10], big}, []string{"head 200 cold promises 1", "body of 32768 bytes", "body of 32768 bytes", "body of 32768 bytes", "end"}},
		"more than one message may hold": {
			"GET", adapter.Head{Status: 200, ContentLength: callwire.WholeBody + 1},
			[]string{big + "y"},
			[]string{"head 200 cold promises 65537", "body of 32768 bytes", "body of 32768 bytes", `body "y"`, "end"},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			withHarness(t, nil, func(w *harness) {
				p := w.begin()
				p.ticket("a")
				claim := w.claim()
				claim.grant(callwire.Call{Method: tc.method, Whole: true})
				(<-w.adapter.calls).answer(tc.head, tc.parts...)
				claim.hear(tc.want...)
				claim.hearEnd()
				p.hear("pull 1 done a")
				p.retire("test")
				w.ended(nil)
			})
		})
	}
}

func TestRequestReachesTheFunctionAsItCame(t *testing.T) {
	withHarness(t, nil, func(w *harness) {
		p := w.begin()
		p.ticket("a")
		claim := w.claim()
		claim.grant(callwire.Call{
			Attempt: 2, Method: "PUT", RequestURI: "/x?y=%20", Host: "h", Whole: true, Body: []byte("body"),
			ContentLength: 4, Remaining: time.Second,
			Header: []callwire.Field{{Name: "X-A", Value: "1"}, {Name: "x-b", Value: "3"}, {Name: "X-A", Value: "2"}},
		})
		call := <-w.adapter.calls
		body, err := io.ReadAll(call.Body)
		got := fmt.Sprint(call.ID[:2], call.Attempt, call.Method, call.RequestURI, call.Host, call.Header, call.ContentLength, string(body), err, time.Until(call.Deadline))
		if want := fmt.Sprint("61", 2, "PUT", "/x?y=%20", "h", []callwire.Field{{Name: "X-A", Value: "1"}, {Name: "x-b", Value: "3"}, {Name: "X-A", Value: "2"}}, 4, "body", nil, time.Second); got != want {
			t.Errorf("got  %s\nwant %s", got, want)
		}
		call.hello()
		p.retire("test")
		w.ended(nil)
	})
}

func TestStreamedBodies(t *testing.T) {
	cases := map[string]struct {
		send func(*claimed)
		body string
		err  error
	}{
		"complete":        {func(c *claimed) { c.body("ab"); c.body("cd"); c.bodyEnd(false) }, "abcd", nil},
		"empty":           {func(c *claimed) { c.bodyEnd(false) }, "", nil},
		"aborted":         {func(c *claimed) { c.body("ab"); c.bodyEnd(true) }, "ab", errBodyCut},
		"gateway is lost": {func(c *claimed) { c.body("ab"); c.lose() }, "ab", errBodyCut},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			withHarness(t, nil, func(w *harness) {
				p := w.begin()
				p.ticket("a")
				claim := w.claim()
				claim.grant(callwire.Call{Method: "POST", ContentLength: -1})
				call := <-w.adapter.calls
				tc.send(claim)
				body, err := io.ReadAll(call.Body)
				if string(body) != tc.body || !errors.Is(err, tc.err) {
					t.Errorf("body %q, %v; want %q, %v", body, err, tc.body, tc.err)
				}
				call.hello()
				p.retire("test")
				w.ended(nil)
			})
		})
	}
}

func TestBodyEndsWithTheCall(t *testing.T) {
	for name, end := range map[string]func(*claimed){
		"cancelled": (*claimed).cancel,
		"timed out": func(*claimed) {},
	} {
		t.Run(name, func(t *testing.T) {
			withHarness(t, nil, func(w *harness) {
				p := w.begin()
				p.ticket("a")
				claim := w.claim()
				claim.grant(callwire.Call{Method: "POST", ContentLength: 10})
				call := <-w.adapter.calls
				end(claim)
				if _, err := io.ReadAll(call.Body); err == nil {
					t.Error("the body ended well")
				}
				<-call.ctx.Done()
				call.end <- adapter.Ended(call.ctx, call.Call)
				p.hear("goodbye CALL_BROKEN")
				w.ended(nil)
			})
		})
	}
}

func TestBodyThatTheFunctionDoesNotReadHoldsUpNothing(t *testing.T) {
	withHarness(t, nil, func(w *harness) {
		p := w.begin()
		p.ticket("a")
		claim := w.claim()
		claim.grant(callwire.Call{Method: "POST", ContentLength: -1})
		call := <-w.adapter.calls
		claim.body("nobody reads this")
		claim.body("nor this")
		synctest.Wait()
		begun := time.Now()
		call.hello()
		claim.hear(`head 200 cold whole "hello"`)
		claim.hearEnd()
		p.hear("pull 1 done a")
		p.retire("test")
		w.ended(nil)
		if took := time.Since(begun); took != 0 {
			t.Errorf("the attempt stayed for %v", took)
		}
	})
}

func TestCallsThatDoNotEndWell(t *testing.T) {
	cases := map[string]struct {
		write   func(adapter.ResultWriter)
		err     error
		said    []string
		goodbye string
	}{
		"not started": {nil, adapter.ErrNotStarted, []string{"release"}, "goodbye FUNCTION_ENDED"},
		"lost":        {nil, adapter.ErrFunctionLost, []string{"end FUNCTION_LOST"}, "goodbye CALL_BROKEN"},
		"bad answer":  {nil, adapter.ErrBadAnswer, []string{"end BAD_ANSWER"}, "goodbye CALL_BROKEN"},
		"timed out":   {nil, adapter.ErrTimedOut, []string{"end TIMED_OUT"}, "goodbye CALL_BROKEN"},
		"something":   {nil, errors.New("what"), []string{"end FUNCTION_LOST"}, "goodbye CALL_BROKEN"},
		"lost behind the head of a small answer": {
			func(w adapter.ResultWriter) { _ = w.WriteHead(adapter.Head{Status: 200, ContentLength: 9}) },
			adapter.ErrFunctionLost, []string{"end FUNCTION_LOST"}, "goodbye CALL_BROKEN",
		},
		"lost behind a part of an answer": {
			func(w adapter.ResultWriter) {
				_ = w.WriteHead(adapter.Head{Status: 200, ContentLength: -1})
				_, _ = io.WriteString(w, "part")
			},
			adapter.ErrFunctionLost, []string{"head 200 cold", `body "part"`, "end FUNCTION_LOST"}, "goodbye CALL_BROKEN",
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			withHarness(t, nil, func(w *harness) {
				p := w.begin()
				claim, call := w.call(p, "a")
				other, otherCall := w.call(p, "b")
				if tc.write != nil {
					go func() { tc.write(call.w); call.end <- fmt.Errorf("oh: %w", tc.err) }()
				} else {
					call.end <- fmt.Errorf("oh: %w", tc.err)
				}
				claim.hear(tc.said...)
				claim.hearEnd()
				p.hear(tc.goodbye + ": oh: " + tc.err.Error())
				w.runs() // for the other call
				p.hearNothing()
				otherCall.hello()
				other.hear(`head 200 whole "hello"`)
				other.hearEnd()
				p.hear("hung up")
				w.ended(nil)
			})
		})
	}
}

func TestACallThatTheFunctionDidNotGetCostsNoInstance(t *testing.T) {
	const took = time.Second
	cases := map[string]struct {
		err  error
		exec time.Duration // as the gateway and the scheduler hear it
	}{
		"end UNSENDABLE":     {adapter.ErrUnsendable, 0},
		"end BODY_TOO_LARGE": {adapter.ErrBodyTooLarge, 0},
		"end TOO_LATE":       {adapter.ErrTooLate, 0},
		"release":            {adapter.ErrNotTaken, 0},
		"end BAD_ANSWER":     {adapter.ErrOtherProtocol, took}, // it has had the call
	}
	for said, tc := range cases {
		t.Run(said, func(t *testing.T) {
			withHarness(t, nil, func(w *harness) {
				p := w.begin()
				claim, call := w.call(p, "a")
				time.Sleep(took)
				call.end <- fmt.Errorf("%w: why", tc.err)
				f := <-claim.said
				if got := tellAttempt(f); got != said {
					t.Errorf("heard %q, want %q", got, said)
				}
				if end, err := callwire.ParseEnd(f); f.Kind == callwire.KindEnd && (err != nil || end.Exec != tc.exec) {
					t.Errorf("the gateway hears that the function took %v (%v), want %v", end.Exec, err, tc.exec)
				}
				claim.hearEnd()
				p.hear(fmt.Sprintf("pull 1 done a after %v", tc.exec))
				time.Sleep(5 * time.Second) // the report comes with a ping
				synctest.Wait()
				if ran := p.report.Load().GetCalls() == 1; ran != (tc.exec > 0) {
					t.Errorf("the report counts the call as one that ran: %v", ran)
				}
				w.runs()
				p.hearNothing()
				p.retire("test")
				w.ended(nil)
			})
		})
	}
}

func TestInstanceStaysIfTheClientBrokeOffBeforeTheFunctionSawIt(t *testing.T) {
	for name, breakOff := range map[string]func(*claimed){
		"cancelled":    (*claimed).cancel,
		"body aborted": func(c *claimed) { c.bodyEnd(true) },
	} {
		t.Run(name, func(t *testing.T) {
			withHarness(t, nil, func(w *harness) {
				p := w.begin()
				p.ticket("a")
				claim := w.claim()
				claim.grant(callwire.Call{Method: "POST", ContentLength: 10})
				call := <-w.adapter.calls
				time.Sleep(time.Millisecond)
				breakOff(claim)
				synctest.Wait()
				call.end <- adapter.ErrNotStarted
				p.hear("pull 1 done a after 0s")
				p.retire("test")
				w.ended(nil)
			})
		})
	}
}

func TestFunctionWithoutAnAnswerIsToldToTheGateway(t *testing.T) {
	withHarness(t, nil, func(w *harness) {
		p := w.begin()
		claim, call := w.call(p, "a")
		call.end <- nil
		claim.hear("end BAD_ANSWER")
		claim.hearEnd()
		p.retire("test")
		w.ended(nil)
	})
}

func TestTicketWithAnAddressThatIsNoneIsGivenBack(t *testing.T) {
	withHarness(t, nil, func(w *harness) {
		w.agent.dialGateway = func(context.Context, string) (net.Conn, error) { return nil, errors.New("no address") }
		p := w.begin()
		p.ticket("a")
		p.hear("pull 1 done a after 0s unclaimed")
		p.retire("test")
		w.ended(nil)
	})
}

func TestWhatALaterGatewaySaysDoesNotLoseTheCall(t *testing.T) {
	withHarness(t, nil, func(w *harness) {
		p := w.begin()
		p.ticket("a")
		c := w.claim()
		beyond := func(b []byte) []byte { return callwire.AppendFrame(b, 200, 0xff, c.number, nil) }
		c.write(beyond)
		c.grant(get())
		c.write(beyond)
		call := <-w.adapter.calls
		call.hello()
		c.hear(`head 200 cold whole "hello"`)
		c.hearEnd()
		p.retire("test")
		w.ended(nil)
	})
}

func TestATicketGoesBackIfTheGatewayIsNotUnderstood(t *testing.T) {
	for _, protocol := range []uint32{0, 1000} {
		withHarness(t, nil, func(w *harness) {
			w.gateway.protocol = protocol
			p := w.begin()
			p.ticket("a")
			p.hear("pull 1 done a after 0s unclaimed")
			p.retire("test")
			w.ended(nil)
		})
	}
}

func TestAnAgentLeavesASchedulerWhoseProtocolItDoesNotSpeak(t *testing.T) {
	withHarness(t, nil, func(w *harness) {
		p := w.begin()
		p.say(&agentwire.PullReply{Kind: &agentwire.PullReply_Welcome{Welcome: &agentwire.Welcome{Protocol: 1000, Release: "v9"}}})
		p.hear("goodbye UNSUPPORTED")
		w.ended(nil)
	})
}
