package main

import (
	"errors"
	"fmt"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/windlass-dev/windlass/internal/callwire"
	"github.com/windlass-dev/windlass/internal/rawtcp"
	"github.com/windlass-dev/windlass/pkg/invocation"
)

const helloWithin = 5 * time.Second

var errLost = errors.New("the instance broke off the call")

// framesGateway hands calls to agents by the product's frames. A goroutine reads each agent's
// connection.
type framesGateway struct{ places places[*framesPlace] }

// framesPlace is an agent's connection, and its only place.
type framesPlace struct {
	conn *callwire.Conn

	mu      sync.Mutex // guards everything below
	number  uint32
	calls   map[uint32]*framesCall
	noMore  bool
	noFlush bool // the reader writes for all that it sends
}

// framesCall is a call at the gateway.
type framesCall struct {
	message callwire.Call
	place   atomic.Pointer[framesPlace]
	number  uint32
	// done is how it ended: head and body, or an error.
	done chan error
	head callwire.Head
}

// sendTo implements sender.
func (c *framesCall) sendTo(p *framesPlace) bool {
	p.mu.Lock()
	if p.noMore {
		p.mu.Unlock()
		return false
	}
	p.number += 2
	c.number = p.number
	p.calls[p.number] = c
	c.place.Store(p)
	later := p.noFlush
	p.mu.Unlock()
	p.conn.CommitLater(c.message.Append(p.conn.Begin(), c.number))
	if !later {
		p.conn.Flush()
	}
	return true
}

// ServeHTTP implements http.Handler.
func (g *framesGateway) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := wholeBody(r)
	if err != nil {
		unanswered(w, err)
		return
	}
	c := &framesCall{done: make(chan error, 1)}
	c.message = callwire.Call{
		Invocation: invocation.NewID(time.Now()), Attempt: 1, Remaining: callTime,
		Method: r.Method, RequestURI: r.RequestURI, Host: r.Host, Header: make([]callwire.Field, 0, len(r.Header)+2),
		ContentLength: int64(len(body)), Whole: true, Body: body,
	}
	passing(r, c.message.Invocation, func(name, value string) {
		c.message.Header = append(c.message.Header, callwire.Field{Name: name, Value: value})
	})
	g.places.serve(c)
	select {
	case err = <-c.done:
	case <-r.Context().Done():
		g.abandon(c)
		return
	}
	if err != nil {
		unanswered(w, err)
		return
	}
	writeAnswer(w, &c.head)
}

// abandon cancels a call, which leaves its connection as it is.
func (g *framesGateway) abandon(c *framesCall) {
	if g.places.leave(c) {
		return
	}
	if p := c.place.Load(); p != nil {
		p.conn.Commit(callwire.AppendFrame(p.conn.Begin(), callwire.KindCancel, 0, c.number, nil))
	}
}

func writeAnswer(w http.ResponseWriter, head *callwire.Head) {
	header, values := w.Header(), make([]string, len(head.Header))
	for i, f := range head.Header {
		name := http.CanonicalHeaderKey(f.Name)
		if before := header[name]; before != nil {
			header[name] = append(before, f.Value)
			continue
		}
		values[i] = f.Value
		header[name] = values[i : i+1 : i+1]
	}
	w.WriteHeader(head.Status)
	_, _ = w.Write(head.Body)
}

// serveAgent reads an agent's connection until it ends.
func (g *framesGateway) serveAgent(c net.Conn) error {
	callwire.NoticeDeadPeer(c)
	conn := callwire.Accept(rawtcp.Wrap(c), helloWithin, nil)
	defer conn.Close()
	first, err := conn.Read()
	if err != nil {
		return err
	}
	if _, err := callwire.ParseHello(first); err != nil {
		return err
	}
	conn.Trust()
	welcome := callwire.Welcome{Protocol: 1}
	conn.Commit(welcome.Append(conn.Begin()))
	p := &framesPlace{conn: conn, calls: map[uint32]*framesCall{}}
	defer g.lose(p)
	for {
		f, err := conn.Read()
		if err != nil {
			return err
		}
		p.holdFlush(true)
		if err := g.onFrame(p, f); err != nil {
			return err
		}
		p.holdFlush(false)
		if !conn.HasWholeFrame() {
			conn.Flush()
		}
	}
}

func (p *framesPlace) holdFlush(hold bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.noFlush = hold
}

// onFrame hands the place of a call that has ended to the next one, before anything else.
func (g *framesGateway) onFrame(p *framesPlace, f callwire.Frame) error {
	switch f.Kind {
	case callwire.KindLend:
		g.places.give(p)
		return nil
	case callwire.KindHead, callwire.KindRelease, callwire.KindEnd:
	default:
		return fmt.Errorf("%w: of kind %d", callwire.ErrFrame, f.Kind)
	}
	p.mu.Lock()
	c := p.calls[f.Call]
	delete(p.calls, f.Call)
	p.mu.Unlock()
	if c == nil {
		return fmt.Errorf("%w: nobody called %d", callwire.ErrFrame, f.Call)
	}
	ended, err := errLost, error(nil)
	if f.Kind == callwire.KindHead {
		c.head, err = callwire.ParseHead(f)
		c.head.Body = append([]byte(nil), c.head.Body...)
		ended = nil
	}
	if f.Has(callwire.FlagKeeps) {
		g.places.give(p)
	}
	c.done <- ended
	return err
}

// lose ends the calls of a connection that has ended.
func (g *framesGateway) lose(p *framesPlace) {
	g.places.forget(p)
	p.mu.Lock()
	defer p.mu.Unlock()
	p.noMore = true
	for _, c := range p.calls {
		c.done <- errLost
	}
}
