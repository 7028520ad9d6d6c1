package lambda

import (
	"context"
	"net/http"
	"net/http/httptest"
	"testing"
)

func newCall(id string) *call { return &call{id: id, outcome: make(chan outcome, 1)} }

// The connection's end and a call for it may come at the same time.
func TestCallThatWasMatchedWithARequestThatLeavesGoesToTheNext(t *testing.T) {
	a := New(Config{Namespace: "shop", Function: "hello", Concurrency: 1})
	poll, inbox, _ := a.park()
	if err := a.submit(newCall("a")); err != nil {
		t.Fatal(err)
	}
	a.unpark(poll, inbox)
	_, inbox, _ = a.park()
	select {
	case c := <-inbox:
		if c.id != "a" {
			t.Errorf("got call %q, want a", c.id)
		}
	default:
		t.Error("the call was lost")
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
	a.serveNext(httptest.NewRecorder(), httptest.NewRequestWithContext(ctx, http.MethodGet, base+"/invocation/next", nil))
	t.Error("the connection was not broken off")
}
