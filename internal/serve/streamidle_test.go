package serve

import (
	"bytes"
	"errors"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	agentwire "github.com/windlass-dev/windlass/api/wire/agent/v1alpha1"
)

// Each goroutine has a stack, and one that made a handshake a large one.
func TestAConnectionOfAnAgentHasOneGoroutine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMemory()
		s := startScheduler(t, m, nil, answerPings)
		const many = 3
		for range many {
			c := newRawAgent(t, m.dial())
			c.opens(1)
			c.says(1, ping)
		}
		synctest.Wait()
		all := make([]byte, 1<<20)
		conversing, handshaking := 0, 0
		for _, stack := range strings.Split(string(all[:runtime.Stack(all, true)]), "\n\n") {
			stack, _, _ = strings.Cut(stack, "created by ")
			switch {
			case strings.Contains(stack, "(*streamServer).meet("):
				handshaking++
			case strings.Contains(stack, "(*streamConn)."):
				conversing++
			}
		}
		if conversing != many || handshaking != 0 {
			t.Errorf("%d connections have %d goroutines that converse and %d that made the handshake", many, conversing, handshaking)
		}
		s.end(t)
	})
}

// While it is idle, a connection holds no buffer but that for the next frame's header.
func TestAnIdleConnectionHoldsNoBuffer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMemory()
		s := startScheduler(t, m, nil, answerPings)
		c := newRawAgent(t, m.dial())
		c.opens(1)
		c.says(1, ping, helloOf(3<<20), ping)
		synctest.Wait()
		if c.widened != 1 {
			t.Errorf("the connection's window has grown %d times at the beginning", c.widened)
		}
		for conn := range s.server.agents.conns {
			if conn.frame != nil || conn.replay != nil || conn.stream.in != nil {
				t.Errorf("it holds a frame (%v), %d bytes of its beginning and %d of messages", conn.frame != nil, len(conn.replay), len(conn.stream.in))
			}
		}
		s.end(t)
	})
}

// Clients learn that the server goes, so that they turn to another one.
func TestTheEndOfTheServerIsSaid(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMemory()
		returned := 0
		s := startScheduler(t, m, nil, func(stream pullServer) error {
			defer func() { returned++ }()
			return answerPings(stream)
		})
		with, without := newRawAgent(t, m.dial()), newRawAgent(t, m.dial())
		with.opens(1)
		with.says(1, ping)
		synctest.Wait()
		s.end(t)
		if returned != 1 {
			t.Errorf("%d handlers have returned", returned)
		}
		with.hears("settings ack", "headers 1 :status=200 content-type=application/grpc", "data 1 of 7 bytes",
			"headers 1 ends grpc-status=14 grpc-message=the server shuts down", "reset 1 NO_ERROR", "goaway 1 NO_ERROR", "closed")
		without.hears("goaway 0 NO_ERROR", "closed")
	})
}

func TestAMessageWaitsForTheClientsWindow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMemory()
		var sent error
		s := startScheduler(t, m, nil, func(stream pullServer) error {
			if _, err := stream.Recv(); err != nil {
				return err
			}
			go func() {
				sent = stream.Send(&agentwire.PullReply{Kind: &agentwire.PullReply_Welcome{Welcome: &agentwire.Welcome{Release: strings.Repeat("x", 30<<10)}}})
			}()
			_, err := stream.Recv()
			return err
		})
		c := newRawAgent(t, m.dial())
		_ = c.framer.WriteSettings(http2Window(20_000))
		c.opens(1)
		c.says(1, ping)
		c.hears("settings ack", "settings ack", "headers 1 :status=200 content-type=application/grpc", "data 1 of 16384 bytes", "data 1 of 3616 bytes")
		_ = c.framer.WriteWindowUpdate(1, 100)
		c.hears("data 1 of 100 bytes")
		_ = c.framer.WriteSettings(http2Window(30_000))
		c.hears("settings ack", "data 1 of 10000 bytes")
		time.Sleep(windowWithin)
		c.hears("headers 1 ends grpc-status=8 grpc-message=the client did not take a message in time", "reset 1 NO_ERROR")
		if !errors.Is(sent, errSlow) {
			t.Errorf("the handler learns %v", sent)
		}
		s.end(t)
	})
}

// A handler that sends in the goroutine that receives does not see that the server ends while a message waits for the client.
func TestAClientWithoutRoomDoesNotKeepAServerFromEnding(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMemory()
		var sent error
		s := startScheduler(t, m, nil, func(stream pullServer) error {
			if _, err := stream.Recv(); err != nil {
				return err
			}
			sent = stream.Send(&agentwire.PullReply{Kind: &agentwire.PullReply_Welcome{Welcome: &agentwire.Welcome{Release: strings.Repeat("x", 1000)}}})
			return sent
		})
		c := newRawAgent(t, m.dial())
		_ = c.framer.WriteSettings(http2Window(100))
		c.opens(1)
		c.says(1, ping)
		c.hears("settings ack", "settings ack", "headers 1 :status=200 content-type=application/grpc", "data 1 of 100 bytes")
		stopped := time.Now()
		s.end(t)
		if waited := time.Since(stopped); waited > 100*time.Millisecond || !errors.Is(sent, errFinished) {
			t.Errorf("the server ends after %v, and the handler learns %v", waited, sent)
		}
	})
}

// A client that reads nothing can only keep itself waiting.
func TestAClientThatReadsNothingLosesItsConnection(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMemory()
		s := startScheduler(t, m, nil, answerPings)
		conn := m.dial()
		began := time.Now()
		_, err := conn.Write(bytes.Repeat([]byte("x"), 100)) // the server's settings come first
		if took := time.Since(began); err == nil || took != writeWithin {
			t.Errorf("after %v it ends with %v", took, err)
		}
		s.end(t)
	})
}

// A client may come back after its stream, but not at any time.
func TestAConnectionWithoutAStreamEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMemory()
		s := startScheduler(t, m, nil, answerPings)
		c := newRawAgent(t, m.dial())
		for id := uint32(1); id < 5; id += 2 {
			c.opens(id)
			_ = c.framer.WriteData(id, true, messageBytes(ping))
			time.Sleep(idleFor - time.Second)
		}
		synctest.Wait()
		c.mu.Lock()
		c.heard = nil
		c.mu.Unlock()
		time.Sleep(time.Second)
		c.hears("goaway 3 NO_ERROR", "closed")
		s.end(t)
	})
}
