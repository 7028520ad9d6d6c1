package main

import (
	"bytes"
	"net"
	"sync"
	"testing"
	"time"

	"github.com/windlass-dev/windlass/internal/callwire"
)

// acceptAgents serves the connections of agents with serve, until the test ends.
func acceptAgents(t testing.TB, serve func(*callwire.Conn) error) (addr string) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var serving sync.WaitGroup
	var mu sync.Mutex
	var conns []*callwire.Conn
	serving.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			conn := callwire.Accept(c, 5*time.Second, nil)
			mu.Lock()
			conns = append(conns, conn)
			mu.Unlock()
			serving.Go(func() {
				defer conn.Close()
				if greetAgent(conn) == nil {
					_ = serve(conn)
				}
			})
		}
	})
	t.Cleanup(func() {
		_ = l.Close()
		mu.Lock()
		for _, c := range conns {
			c.Close()
		}
		mu.Unlock()
		serving.Wait()
	})
	return l.Addr().String()
}

func greetAgent(conn *callwire.Conn) error {
	first, err := conn.Read()
	if err == nil {
		_, err = callwire.ParseHello(first)
	}
	if err != nil {
		return err
	}
	conn.Trust()
	welcome := callwire.Welcome{Protocol: 1}
	conn.Commit(welcome.Append(conn.Begin()))
	return nil
}

// newGateway is a gateway that answers each claim with the same call. It delivers the heads of
// the answers.
func newGateway(t testing.TB, call callwire.Call) (addr string, answers <-chan callwire.Head) {
	t.Helper()
	heads := make(chan callwire.Head, 1)
	return acceptAgents(t, func(conn *callwire.Conn) error {
		for {
			f, err := conn.Read()
			if err != nil {
				return err
			}
			switch f.Kind {
			case callwire.KindClaim:
				claim, err := callwire.ParseClaim(f)
				if err != nil {
					return err
				}
				call := call
				call.Invocation = claim.Invocation
				conn.Commit(call.Append(conn.Begin(), f.Call))
			case callwire.KindHead:
				head, err := callwire.ParseHead(f)
				if err != nil {
					return err
				}
				head.Body = bytes.Clone(head.Body)
				heads <- head
			}
		}
	}), heads
}
