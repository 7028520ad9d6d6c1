package lambda

import (
	"context"
	"net/http"
	"net/http/httptest"
	"testing"
	"testing/synctest"
)

func newCall(id string) *call { return &call{id: id, outcome: make(chan outcome, 1)} }

// The connection's end and a call for it may come at the same time.
func TestCallThatWasMatchedWithARequestThatLeavesGoesToTheNext(t *testing.T) {
	d := newDispatcher()
	d.configure("shop", "hello", 1)
	poll, inbox, _ := d.park()
	if err := d.submit(newCall("a")); err != nil {
		t.Fatal(err)
	}
	d.unpark(poll, inbox)
	_, inbox, _ = d.park()
	select {
	case c := <-inbox:
		if c.id != "a" {
			t.Errorf("got call %q, want a", c.id)
		}
	default:
		t.Error("the call was lost")
	}
}

func TestNothingIsHandedOutWhenTheServerHasEnded(t *testing.T) {
	d := newDispatcher()
	d.configure("shop", "hello", 2)
	poll, inbox, _ := d.park()
	if err := d.submit(newCall("a")); err != nil {
		t.Fatal(err)
	}
	_, other, _ := d.park()
	d.close(errServerGone)
	d.unpark(poll, inbox)
	if len(other) > 0 {
		t.Error("a call that has ended was handed out")
	}
}

// A reply that is empty would be an event without an id for the client.
func TestRequestForAnEventThatGetsNoneHasNoReply(t *testing.T) {
	a := New(Config{Namespace: "shop", Function: "hello", Concurrency: 1})
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	defer func() {
		if got := recover(); got != http.ErrAbortHandler {
			t.Errorf("panic %v, want %v", got, http.ErrAbortHandler)
		}
	}()
	a.server.serveNext(httptest.NewRecorder(), httptest.NewRequestWithContext(ctx, http.MethodGet, base+"/invocation/next", nil))
	t.Error("the connection was not broken off")
}

func TestA3AnOrdinaryEndIsToldToClientsThatKnowIt(t *testing.T) {
	for name, c := range map[string]struct {
		a      func() *Adapter
		path   string
		client string
		want   int
	}{
		"waiting for an event":         {one, base + "/invocation/next", self, http.StatusNoContent},
		"waiting for an assignment":    {func() *Adapter { return NewSpare(0) }, assignmentPath, self, http.StatusNoContent},
		"a client that does not know":  {one, base + "/invocation/next", "", 0},
		"no client of a warm pool did": {func() *Adapter { return NewSpare(0) }, assignmentPath, "", 0},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newHarnessOf(t, c.a())
				conn, err := s.l.dial(t.Context())
				if err != nil {
					t.Fatal(err)
				}
				request := "GET " + c.path + " HTTP/1.1\r\nHost: 127.0.0.1:9001\r\n"
				if c.client != "" {
					request += headClient + ": " + c.client + "\r\n"
				}
				s.write(conn, request+"\r\n")
				got := make(chan int, 1)
				go func() { got <- replyOf(conn) }()
				s.end()
				if status := <-got; status != c.want {
					t.Errorf("status %d, want %d", status, c.want)
				}
				conn.Close()
			})
		})
	}
}

func one() *Adapter { return New(Config{Namespace: "shop", Function: "hello", Concurrency: 1}) }
