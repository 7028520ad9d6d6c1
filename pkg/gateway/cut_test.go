package gateway

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"
	"testing/synctest"
	"time"

	"github.com/windlass-dev/windlass/internal/callwire"
	"github.com/windlass-dev/windlass/pkg/gateway/core"
)

// An answer may have failed before its client has seen the head. The client sees it still:
// clients make a call again whose connection ends without one.
func TestTheHeadOfABrokenAnswerReachesTheClient(t *testing.T) {
	for range 50 {
		g, c := claimedByEnded(t, core.Spec{})
		w := httptest.NewRecorder()
		c.client.w, c.client.rc = w, *http.NewResponseController(w)
		a := c.currentAttempt()
		a.runBy = time.Now().Add(time.Minute)
		a.answer = callwire.NewInflow(nil, 1)
		if _, err := c.beginAnswer(a, &callwire.Head{Status: 299, ContentLength: -1}); err != nil {
			t.Fatal(err)
		}
		g.shell.step(c, func(v *core.Invocation) core.Decision { return v.Fail(a.number) }, problem{})
		g.wait(c)
		if w.Code != 299 || !c.answerBroken() {
			t.Fatalf("answered %d, broken %t", w.Code, c.answerBroken())
		}
	}
}

// net/http ends the context of a request whose reading was given up. That is no client that has left.
func TestAnAnswerReachesAClientWhoseBodyWasGivenUp(t *testing.T) {
	for name, whole := range map[string]bool{"whole": true, "streamed": false} {
		t.Run(name, func(t *testing.T) {
			for range 50 {
				synctest.Test(t, func(t *testing.T) { answerGivenUp(t, whole) })
			}
		})
	}
}

// answerGivenUp begins the answer to a call just when the reading of its body was given up.
func answerGivenUp(t *testing.T, whole bool) {
	g, c := claimedByEnded(t, core.Spec{})
	w := httptest.NewRecorder()
	c.client.w, c.client.rc = w, *http.NewResponseController(w)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	c.client.request = c.client.request.WithContext(ctx)
	c.client.body.slow.Store(true)
	a := c.currentAttempt()
	a.runBy = time.Now().Add(time.Minute)
	head := &callwire.Head{Status: 299, ContentLength: -1, Whole: whole}
	if !whole {
		a.answer = callwire.NewInflow(nil, 1)
	}
	if _, err := c.beginAnswer(a, head); err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	go func() { g.wait(c); close(ended) }()
	synctest.Wait()
	if !whole {
		a.answer.End(io.EOF, nil)
	}
	select {
	case <-ended:
	case <-time.After(time.Hour):
		c.decide((*core.Invocation).ClientLeft, problem{})
		t.Fatal("the answer waits for ever")
	}
	if w.Code != 299 || c.answerBroken() {
		t.Errorf("answered %d, broken %t", w.Code, c.answerBroken())
	}
}

// The buffer of a connection may have megabytes, and what has come of the next frames.
func TestAHeadKeepsNothingOfTheBufferThatItCameIn(t *testing.T) {
	g, c := claimedByEnded(t, core.Spec{})
	a := c.currentAttempt()
	a.conn.gateway, a.conn.shell = g, g.shell
	buffer := make([]byte, 1)
	for _, head := range []callwire.Head{{Status: 103, Body: buffer}, {Status: 200, ContentLength: -1, Body: buffer[:0]}} {
		if err := a.onHead(head); err != nil {
			t.Fatal(err)
		}
	}
	interim, head, _ := c.takeHead()
	if len(interim) != 1 || interim[0].Body != nil || head == nil || head.Body != nil {
		t.Errorf("kept %+v and %+v", interim, head)
	}
}

// The audits, which end a call whose time is over, come every 250 ms. What is answered in between counts.
func TestAnAnswerThatComesBeforeTheAuditOfItsEndReachesTheClient(t *testing.T) {
	for name, as := range map[string]struct{ interim, streamed bool }{
		"at once": {}, "after an interim one": {interim: true}, "streamed": {streamed: true},
	} {
		t.Run(name, func(t *testing.T) {
			g, c := claimedByEnded(t, core.Spec{})
			a := c.currentAttempt()
			a.runBy = time.Now().Add(-time.Millisecond)
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				c.client.w, c.client.rc, c.client.request = w, *http.NewResponseController(w), r
				if as.interim {
					c.interimReceived(a, callwire.Head{Status: 103})
				}
				head := &callwire.Head{Status: 299, ContentLength: -1, Whole: true, Body: []byte("late")}
				if as.streamed {
					head.Whole, head.Body = false, nil
					a.answer = callwire.NewInflow(nil, 1)
					_ = a.answer.Push([]byte("late"))
					a.answer.End(io.EOF, nil)
				}
				if _, err := c.beginAnswer(a, head); err != nil {
					t.Error(err)
				}
				g.wait(c)
			}))
			defer server.Close()
			resp, err := http.Get(server.URL)
			if err != nil {
				t.Fatalf("the client has no answer, and the call counts as answered: %t; %v", c.answered(), err)
			}
			defer resp.Body.Close()
			if body, err := io.ReadAll(resp.Body); resp.StatusCode != 299 || string(body) != "late" || err != nil {
				t.Errorf("answered %d %q, %v", resp.StatusCode, body, err)
			}
		})
	}
}

// A write that fails counts as a client that has left.
func TestNoWriteFailsBeforeTheAuditOfItsCallsEnd(t *testing.T) {
	for _, left := range []time.Duration{-time.Second, 0, problemWithin - time.Millisecond, time.Minute} {
		now := time.Now()
		runBy := now.Add(left)
		if by := writeBy(runBy); by.Before(runBy.Add(2*core.ReofferEvery)) || by.Before(now.Add(problemWithin)) {
			t.Errorf("with %v left, writes fail after %v", left, by.Sub(now))
		}
	}
}
