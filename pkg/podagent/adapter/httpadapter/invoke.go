package httpadapter

import (
	"context"
	"errors"
	"fmt"

	"github.com/windlass-dev/windlass/pkg/invocation"
	"github.com/windlass-dev/windlass/pkg/podagent/adapter"
)

// Invoke sends call to the function as one request.
func (a *Adapter) Invoke(ctx context.Context, call *adapter.Call, w adapter.ResultWriter) error {
	if invocation.IsGRPC(call.Header.Get("Content-Type")) {
		return a.http2.invoke(ctx, call, w)
	}
	r := newRequest(call)
	c, sent, err := a.begin(ctx, r)
	if err != nil {
		return err
	}
	x := exchange{request: r, w: w, conn: c}
	if !sent && !c.refused {
		x.up = r.startUpload(c)
	}
	reusable, err := x.readAnswer(ctx)
	switch {
	case c.heard && !a.speaksHTTP1.Load():
		a.speaksHTTP1.Store(true)
	case err != nil && !c.heard && !a.speaksHTTP1.Load():
		err = a.explainSilence(ctx, err)
	}
	if c.unwatch() && reusable && !c.refused {
		a.idle.put(c)
	} else {
		c.close()
	}
	return err
}

// explainSilence is the error of a call that the function broke off with err, without a word, as some
// servers of HTTP/2 do with HTTP/1.1. One that has never answered by HTTP/1.1 is asked for HTTP/2. That
// proves nothing about this call: its handler may have ended the connection.
func (a *Adapter) explainSilence(ctx context.Context, err error) error {
	var how lost
	if !errors.As(err, &how) || !a.http2.isSpoken(ctx) {
		return err
	}
	return fmt.Errorf("%w: %s; %w", adapter.ErrOtherProtocol, how.how, errOnlyHTTP2)
}

// begin writes the head of a request, and a small body with it, to a connection, which it
// returns. Whether the body is sent is the second result. After an error the function has seen
// nothing.
func (a *Adapter) begin(ctx context.Context, r request) (c *conn, sent bool, err error) {
	m := messages.Get().(*message)
	defer m.recycle()
	if m.bytes, err = appendHead(m.bytes[:0], r, a.addr); err != nil {
		return nil, false, fmt.Errorf("%w: %w", adapter.ErrUnsendable, err)
	}
	m.bytes, sent = r.takeSmall(m.bytes)
	if c, err = a.send(ctx, m.bytes); err != nil {
		return nil, false, fmt.Errorf("%w: %w", adapter.ErrNotStarted, err)
	}
	return c, sent, nil
}

// send writes the first bytes of a request to a connection, which it returns. It fails only if
// the function cannot have seen any of them: nothing but the end of a kept connection makes it
// try another, and only before the system took a byte.
func (a *Adapter) send(ctx context.Context, first []byte) (*conn, error) {
	for {
		c, err := a.connect(ctx)
		if err != nil {
			return nil, err
		}
		c.watch(ctx)
		n, err := c.net.Write(first)
		if n > 0 || err == nil {
			// The function may have answered before it stopped reading, and if not, that
			// shows when the answer is read.
			c.refused = err != nil
			return c, nil
		}
		c.unwatch()
		c.close()
		if !c.kept && ctx.Err() == nil {
			return nil, err
		}
	}
}

// connect returns a connection for a call, kept or new.
func (a *Adapter) connect(ctx context.Context) (*conn, error) {
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	if c := a.idle.take(); c != nil {
		return c, nil
	}
	to, err := a.dial(ctx, "tcp", a.addr)
	if err != nil {
		return nil, err
	}
	return newConn(to), nil
}
