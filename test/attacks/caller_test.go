package attacks

import (
	"bytes"
	"crypto/tls"
	"errors"
	"net"
	"sync"
	"time"

	"github.com/windlass-dev/windlass/api/wire"
	agentwire "github.com/windlass-dev/windlass/api/wire/agent/v1alpha1"
	"github.com/windlass-dev/windlass/internal/callwire"
	"github.com/windlass-dev/windlass/internal/mtls"
)

// agentCID is who the attacker says that it is.
const agentCID = "00000001-000001"

// caller is an agent's connection with the gateway. Its reader waits for what the attack waits
// for, and answers pings.
type caller struct {
	w    *platform
	net  net.Conn
	wire *callwire.Conn
	last uint32 // number of the last claim
}

// message is a frame of a call.
type message func(b []byte, call uint32) []byte

func head(h callwire.Head) message       { return h.Append }
func end(e callwire.End) message         { return e.Append }
func release(l callwire.Release) message { return l.Append }

func body(part []byte) message {
	return func(b []byte, call uint32) []byte { return callwire.AppendBody(b, call, part) }
}

// whole is an answer.
func whole(status int, content []byte, headers ...callwire.Field) message {
	return head(callwire.Head{Status: status, Header: headers, ContentLength: int64(len(content)), Whole: true, Body: content})
}

// toGateway connects with the gateway as an agent does, and says hello.
func (w *platform) toGateway() *caller {
	w.Helper()
	c := w.connected()
	w.Cleanup(c.close)
	if err := c.greet(); err != nil {
		w.Fatal(err)
	}
	return c
}

// connected connects with the gateway, and says nothing.
func (w *platform) connected() *caller {
	w.Helper()
	conn, err := tls.Dial("tcp", w.gateway, w.callsTLS())
	if err != nil {
		w.Fatal(err)
	}
	return &caller{w: w, net: conn, wire: callwire.NewConn(conn, nil)}
}

// callsTLS is how agents connect with gateways.
func (w *platform) callsTLS() *tls.Config {
	w.Helper()
	config, err := mtls.AgentCalls(w.ca.PEM(), domain.Gateway())
	if err != nil {
		w.Fatal(err)
	}
	return config
}

func (c *caller) close() { c.wire.Close() }

func (c *caller) greet() error {
	hello := callwire.Hello{CID: agentCID, ProtocolMin: wire.AgentProtocols.Min, ProtocolMax: wire.AgentProtocols.Max}
	c.wire.Commit(hello.Append(c.wire.Begin()))
	f, err := c.wire.Read()
	if err != nil {
		return err
	}
	_, err = callwire.ParseWelcome(f)
	return err
}

// claim claims a ticket's call; nil if it was refused.
func (c *caller) claim(ticket *agentwire.Ticket) (*attempt, error) {
	c.last += 2
	number := c.last - 1
	c.wire.Commit(callwire.AppendFrame(c.wire.Begin(), callwire.KindClaim, 0, number, func(b []byte) []byte {
		for _, field := range [][]byte{ticket.GetInvocationId(), ticket.GetToken()} {
			b = append(append(b, byte(len(field))), field...)
		}
		return b
	}))
	return c.next(number)
}

// next waits for a call: for that of a claim, or for one by a loan if its number is 0.
func (c *caller) next(number uint32) (*attempt, error) {
	for {
		f, err := c.wire.Read()
		switch {
		case err != nil:
			return nil, err
		case f.Kind == callwire.KindRefused && f.Call == number:
			return nil, nil
		case f.Kind != callwire.KindCall || number != 0 && f.Call != number:
			continue // of an earlier call
		}
		call, err := callwire.ParseCall(f)
		if err != nil {
			return nil, err
		}
		call.Body = bytes.Clone(call.Body)
		return &attempt{caller: c, number: f.Call, call: call}, nil
	}
}

// ends is the error with which the connection ends; it fails if it does not.
func (c *caller) ends() error {
	c.w.Helper()
	ended := make(chan error, 1)
	go func() {
		for {
			if _, err := c.wire.Read(); err != nil {
				ended <- err
				return
			}
		}
	}()
	return receive(c.w.T, ended, "the end of a connection")
}

// goesOn fails if the connection has ended.
func (c *caller) goesOn() {
	c.w.Helper()
	if a, err := c.claim(&agentwire.Ticket{InvocationId: newID(), Token: newID()}); a != nil || err != nil {
		c.w.Errorf("the connection does not go on: %v, %v", a, err)
	}
}

// attempt is a call that the attacker has.
type attempt struct {
	*caller
	number uint32
	call   callwire.Call
}

// send sends frames of the call.
func (a *attempt) send(frames ...message) {
	b := a.wire.Begin()
	for _, frame := range frames {
		b = frame(b, a.number)
	}
	a.wire.Commit(b)
}

// body reads the body of the call to its end. The error says that it is not whole.
func (a *attempt) body() ([]byte, error) {
	content := a.call.Body
	for !a.call.Whole {
		f, err := a.wire.Read()
		switch {
		case err != nil:
			return content, err
		case f.Call != a.number:
		case f.Kind == callwire.KindBody:
			content = append(content, f.Payload...)
			a.wire.Commit(callwire.AppendCount(a.wire.Begin(), callwire.KindWindow, a.number, uint32(len(f.Payload))))
		case f.Kind == callwire.KindCancel:
			return content, errCancelled
		case f.Kind == callwire.KindEnd:
			if end, err := callwire.ParseEnd(f); err != nil || end.Cut {
				return content, errors.Join(errCut, err)
			}
			return content, nil
		}
	}
	return content, nil
}

var (
	errCancelled = errors.New("the call was cancelled")
	errCut       = errors.New("the body was cut off")
)

// claims claims a ticket that must be granted, on a connection of its own.
func (w *platform) claims(ticket *agentwire.Ticket) *attempt {
	w.Helper()
	a, err := w.toGateway().claim(ticket)
	if a == nil {
		w.Fatalf("not granted: %v", err)
	}
	return a
}

// listens reads a connection until it ends, so that it answers pings.
func (c *caller) listens() {
	var reading sync.WaitGroup
	reading.Go(func() {
		for {
			if _, err := c.wire.Read(); err != nil {
				return
			}
		}
	})
	c.w.Cleanup(func() { c.close(); reading.Wait() })
}

// says writes bytes to a connection that has said nothing yet, and waits until it ends.
func (c *caller) says(text []byte) (took time.Duration) {
	c.w.Helper()
	began := time.Now()
	_, _ = c.net.Write(text)
	_ = c.ends()
	c.close()
	return time.Since(began)
}
