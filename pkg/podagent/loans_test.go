package podagent

import (
	"context"
	"io"
	"net"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/windlass-dev/windlass/internal/callwire"
	"github.com/windlass-dev/windlass/pkg/invocation"
	"github.com/windlass-dev/windlass/pkg/podagent/adapter"
	"github.com/windlass-dev/windlass/pkg/podagent/agentenv"
)

func TestACallByALoanIsTwoFramesAndNoWordToTheScheduler(t *testing.T) {
	withHarness(t, nil, func(w *harness) {
		p := w.begin()
		g := w.loan(p, "a")
		p.hear("pull 0 done a after 0s lent gateway:1 1")
		for range 3 {
			c := g.call(get())
			(<-w.adapter.calls).hello()
			c.hear(`head 200 whole "hello" keeps`)
			c.hearEnd()
		}
		synctest.Wait()
		p.hearNothing()
		p.retire("test")
		w.ended(nil)
	})
}

func TestARecallWithdrawsIdlePlacesAndOthersBehindTheirCalls(t *testing.T) {
	withHarness(t, nil, func(w *harness) {
		p := w.begin()
		g := w.loan(p, "a")
		p.lent("b")
		c := w.claim()
		c.grant(get())
		(<-w.adapter.calls).hello()
		c.hear(`head 200 whole "hello" keeps`)
		p.hear("pull 0 done a after 0s lent gateway:1 1", "pull 0 done b after 0s lent gateway:1 2")
		running := g.call(get())
		call := <-w.adapter.calls
		p.recall(2)
		p.hear("pull 1")
		g.hearCredits("takeBack 1")
		crossed := g.call(get())
		crossed.hear("release no credit")
		call.hello()
		running.hear(`head 200 whole "hello"`)
		p.hear("pull 1")
		synctest.Wait()
		if n := g.lend(0); n != 0 || len(w.adapter.calls) != 0 {
			t.Errorf("the gateway has %d credits, and %d calls run", n, len(w.adapter.calls))
		}
		p.retire("test")
		w.ended(nil)
	})
}

func TestACreditThatComesBackIsPulled(t *testing.T) {
	withHarness(t, nil, func(w *harness) {
		p := w.begin()
		g := w.loan(p, "a")
		p.hear("pull 0 done a after 0s lent gateway:1 1")
		g.giveBack(1)
		p.hear("pull 1")
		g.giveBack(2) // which it does not have
		g.hearCredits("lend 2")
		p.retire("test")
		w.ended(nil)
	})
}

func TestAWarmFunctionGoesOnWithoutSchedulers(t *testing.T) {
	withHarness(t, func(c *agentenv.Config) { c.BackoffAfter, c.IdleTimeout = time.Minute, time.Second }, func(w *harness) {
		p := w.begin()
		g := w.loan(p, "a")
		w.conn.takeDown()
		p.lose()
		for range 100 {
			time.Sleep(30 * time.Second)
			c := g.call(get())
			(<-w.adapter.calls).hello()
			c.hear(`head 200 whole "hello" keeps`)
		}
		w.conn.putUp()
		p = w.stream()
		p.hear(helloText, "pull 0 lent gateway:1 2") // also the place that nobody had
		p.retire("test")
		w.ended(nil)
	})
}

func TestADrainingInstanceDeclinesCallsByCredits(t *testing.T) {
	withHarness(t, nil, func(w *harness) {
		p := w.begin()
		g := w.loan(p, "a")
		running := g.call(get())
		call := <-w.adapter.calls
		w.signal(errSignal)
		synctest.Wait()
		call.hello()
		running.hear(`head 200 whole "hello"`)
		w.ended(nil)
	})
	withHarness(t, nil, func(w *harness) {
		p := w.begin()
		g := w.loan(p, "a")
		w.signal(errSignal)
		g.hearCredits("takeBack 1")
		crossed := g.call(get())
		crossed.hear("release no credit")
		crossed.hearEnd()
		w.ended(nil)
	})
}

// After a connection with loans broke, the gateway learns which calls never came.
func TestABrokenConnectionIsResumed(t *testing.T) {
	withHarness(t, nil, func(w *harness) {
		p := w.begin()
		g := w.loan(p, "a")
		<-w.gateway.conns
		if g.hello.Resume != ([16]byte{}) || g.hello.Seen != 0 {
			t.Errorf("the first hello is %+v", g.hello)
		}
		g.call(get())
		call := <-w.adapter.calls
		p.hear("pull 0 done a after 0s lent gateway:1 1")
		w.gateway.takeDown()
		g.lose()
		p.hear("pull 0") // the place that runs is not lent any more
		time.Sleep(50 * time.Millisecond)
		w.gateway.putUp()
		next := <-w.gateway.conns
		if next.hello.Resume != resumeToken || next.hello.Seen != 2 {
			t.Errorf("it says hello again as %+v", next.hello)
		}
		call.hello() // for nobody
		p.hear("pull 1")
		next.lose() // which had no loans
		synctest.Wait()
		if n := len(w.gateway.conns); n != 0 {
			t.Errorf("dialled an unused gateway again, %d times", n)
		}
		// The next connection has nothing to resume.
		time.Sleep(time.Minute)
		p.ticket("b")
		c := w.claim()
		if c.hello.Resume != ([16]byte{}) {
			t.Error("it resumes what is long over")
		}
		c.refuse()
		p.retire("test")
		w.ended(nil)
	})
}

func TestTheAgentEndsAConnectionWithNonsense(t *testing.T) {
	for name, nonsense := range map[string]func(*gatewayEnd){
		"a number that does not rise": func(g *gatewayEnd) {
			m := get()
			g.write(func(b []byte) []byte { return m.Append(b, 0) })
		},
		"a hello": func(g *gatewayEnd) { g.write((&callwire.Hello{}).Append) },
		"a call that is cut off": func(g *gatewayEnd) {
			g.write(func(b []byte) []byte { return append(b, 0, 0, 0, 1, byte(callwire.KindCall), 0, 0, 0, 0, 0, 0, 2, 255) })
		},
		"a credit that is cut off": func(g *gatewayEnd) {
			g.write(func(b []byte) []byte {
				return append(b, 0, 0, 0, 1, byte(callwire.KindReturn), 0, 0, 0, 0, 0, 0, 0, 255)
			})
		},
	} {
		t.Run(name, func(t *testing.T) {
			withHarness(t, nil, func(w *harness) {
				p := w.begin()
				g := w.loan(p, "a")
				p.hear("pull 0 done a after 0s lent gateway:1 1")
				nonsense(g)
				p.hear("pull 1")
				<-g.over
				p.retire("test")
				w.ended(nil)
			})
		})
	}
}

func TestABodyThatExceedsItsWindowOrGoesOnBehindItsEndCutsItself(t *testing.T) {
	for name, send := range map[string]func(*claimed){
		"too much": func(c *claimed) {
			c.body(strings.Repeat("x", callwire.InitialWindow/2))
			c.body(strings.Repeat("x", callwire.InitialWindow/2))
			c.body("y")
		},
		"behind its end": func(c *claimed) { c.bodyEnd(false); c.body("y") },
	} {
		t.Run(name, func(t *testing.T) {
			withHarness(t, nil, func(w *harness) {
				p := w.begin()
				p.ticket("a")
				c := w.claim()
				c.grant(callwire.Call{Method: "POST", ContentLength: -1})
				call := <-w.adapter.calls
				send(c)
				<-c.over
				call.hello()
				p.hear("pull 1 done a")
				p.retire("test")
				w.ended(nil)
			})
		})
	}
}

func TestTrailersPassInBothDirections(t *testing.T) {
	withHarness(t, nil, func(w *harness) {
		p := w.begin()
		p.ticket("a")
		c := w.claim()
		c.grant(callwire.Call{Method: "POST", ContentLength: -1, Trailer: []string{"x-sum"}})
		call := <-w.adapter.calls
		c.body("ab")
		c.bodyEnd(false, callwire.Field{Name: "X-Sum", Value: "7"}, callwire.Field{Name: "X-Other", Value: "8"})
		if body, err := io.ReadAll(call.Body); string(body) != "ab" || err != nil {
			t.Errorf("body %q, %v", body, err)
		}
		if got := call.Trailer; len(got) != 1 || got.Get("X-Sum") != "7" {
			t.Errorf("trailers %v", got)
		}
		_ = call.w.WriteHead(adapter.Head{Status: 200, ContentLength: 2, Trailer: []string{"X-Status"}})
		_, _ = io.WriteString(call.w, "ok")
		call.end <- call.w.WriteTrailer(invocation.Fields{{Name: "X-Status", Value: "0"}})
		c.hear("head 200 cold promises 2 trailer X-Status", `body "ok"`, "end X-Status=0")
		c.hearEnd()
		p.retire("test")
		w.ended(nil)
	})
}

func TestInterimAnswersAndUpgradesPass(t *testing.T) {
	withHarness(t, nil, func(w *harness) {
		p := w.begin()
		p.ticket("a")
		c := w.claim()
		c.grant(callwire.Call{Method: "GET", Upgrade: "websocket", ExpectContinue: true})
		call := <-w.adapter.calls
		if call.Upgrade != "websocket" || !call.ExpectContinue || call.ContentLength != 0 {
			t.Errorf("called with %+v", call.Call)
		}
		_ = call.w.WriteHead(adapter.Head{Status: 103, ContentLength: -1})
		_ = call.w.WriteHead(adapter.Head{Status: 101, ContentLength: -1, Upgrade: "websocket"})
		c.hear("head 103 cold", "head 101 cold to websocket")
		c.body("ping")
		buffer := make([]byte, 10)
		if n, err := call.Body.Read(buffer); string(buffer[:n]) != "ping" || err != nil {
			t.Errorf("read %q, %v", buffer[:n], err)
		}
		_, _ = io.WriteString(call.w, "pong")
		c.hear(`body "pong"`)
		call.end <- nil
		c.hear("end")
		p.hear("pull 1 done a")
		p.retire("test")
		w.ended(nil)
	})
}

func TestAWholeBodyOutlivesItsFrame(t *testing.T) {
	withHarness(t, func(c *agentenv.Config) { c.Concurrency = 2 }, func(w *harness) {
		p := w.begin()
		p.ticket("a", "b")
		first, second := w.claim(), w.claim()
		first.grant(callwire.Call{Method: "POST", Whole: true, Body: []byte("first")})
		second.grant(callwire.Call{Method: "POST", Whole: true, Body: []byte("other")})
		for range 2 {
			call := <-w.adapter.calls
			want := map[string]string{"61": "first", "62": "other"}[call.ID[:2]]
			if body, _ := io.ReadAll(call.Body); string(body) != want || call.ContentLength != 5 {
				t.Errorf("body %q, want %q", body, want)
			}
			call.hello()
		}
		p.retire("test")
		w.ended(nil)
	})
}

// A slow client holds up its own call only, and not beyond the call's time.
func TestASlowClientHoldsUpItsOwnCallUntilItsTimeIsOver(t *testing.T) {
	withHarness(t, nil, func(w *harness) {
		p := w.begin()
		p.ticket("slow", "quick")
		slow, quick := w.claim(), w.claim()
		slow.opensNothing.Store(true)
		slow.grant(callwire.Call{Method: "GET", Whole: true, Remaining: time.Minute})
		slowCall := <-w.adapter.calls
		quick.grant(callwire.Call{Method: "GET", Whole: true})
		quickCall := <-w.adapter.calls
		begun := time.Now()
		go slowCall.answer(adapter.Head{Status: 200, ContentLength: -1}, strings.Repeat("x", 2*callwire.InitialWindow))
		synctest.Wait()
		quickCall.hello()
		p.hear("pull 1 done quick")
		slow.hear("head 200 cold", "body of 32768 bytes", "body of 32768 bytes")
		slow.hear("end TIMED_OUT")
		if took := time.Since(begun); took != time.Minute {
			t.Errorf("ended after %v", took)
		}
		p.hear("pull 1 done slow after 1m0s")
		p.retire("test")
		w.ended(nil)
	})
}

// One timer ends all calls, each at its own time.
func TestCallsEndAtTheirOwnDeadlines(t *testing.T) {
	withHarness(t, func(c *agentenv.Config) { c.Concurrency = 3 }, func(w *harness) {
		w.run()
		w.adapter.ready <- nil
		p := w.stream()
		p.hear(helloText, "pull 3")
		begun := time.Now()
		for _, after := range []time.Duration{3 * time.Second, time.Second, 2 * time.Second} {
			p.ticket(after.String())
			w.claim().grant(callwire.Call{Method: "GET", Whole: true, Remaining: after})
			call := <-w.adapter.calls
			go func() {
				<-call.ctx.Done()
				if took := time.Since(begun); took != after || context.Cause(call.ctx) != context.DeadlineExceeded {
					t.Errorf("a call of %v ended after %v: %v", after, took, context.Cause(call.ctx))
				}
				call.end <- nil
			}()
		}
		p.hear("pull 1 done 1s", "pull 1 done 2s", "pull 1 done 3s")
		p.retire("test")
		w.ended(nil)
	})
}

// An agent that drains while it dials does not wait for the gateway.
func TestAGatewayThatAcceptsAndSaysNothingHoldsUpNothing(t *testing.T) {
	withHarness(t, nil, func(w *harness) {
		var far net.Conn
		w.agent.dialGateway = func(context.Context, string) (net.Conn, error) {
			var near net.Conn
			near, far = newPipe()
			return near, nil
		}
		p := w.begin()
		begun := time.Now()
		p.ticket("a")
		p.hear("pull 1 done a after 0s unclaimed")
		if took := time.Since(begun); took != claimPatience {
			t.Errorf("given back after %v", took)
		}
		p.retire("test")
		w.ended(nil)
		if took := time.Since(begun); took != claimPatience {
			t.Errorf("ended after %v", took)
		}
		_ = far.Close()
	})
}
