package gateway

import (
	"errors"
	"io"
	"net"
	"runtime"
	"testing"

	"github.com/windlass-dev/windlass/internal/callwire"
	"github.com/windlass-dev/windlass/pkg/gateway/core"
)

// A connection ends while a call with a long body is being sent by it. From when its attempt is among the
// running ones, the next one may get the body, and the first must not take it back. The race detector
// sees an attempt that takes its body later.
func TestAnAttemptTakesTheBodyBeforeItCanEnd(t *testing.T) {
	g := unstarted(t)
	here, there := net.Pipe()
	defer here.Close()
	there.Close()
	conn := &agentConn{gateway: g, shell: g.shell, frames: callwire.NewConn(here, nil), running: make(map[uint32]*attempt)}
	c := g.admitted(core.Spec{})
	c.whole, c.client.body.body = false, io.MultiReader()
	c.client.request.Header.Set("Expect", "100-continue")
	a := &attempt{conn: conn, call: c, unit: c.to.unit, wire: 2, number: 1}

	c.mu.Lock() // which sending needs
	started := make(chan struct{})
	go func() { conn.start(a); close(started) }()
	for !conn.removeAttempt(a) {
		runtime.Gosched()
	}
	a.markEnded()
	c.client.body.replay.giveBack()
	c.client.body.replay.lendTo(2)
	c.mu.Unlock()
	<-started

	if _, err := c.client.body.readFor(1, 0, nil, nil); !errors.Is(err, errReleased) {
		t.Errorf("the first attempt reads: %v", err)
	}
	if _, err := c.client.body.readFor(2, 0, make([]byte, 1), nil); !errors.Is(err, io.EOF) {
		t.Errorf("the second attempt does not: %v", err)
	}
}
