package httpadapter

import (
	"context"
	"fmt"

	"github.com/windlass-dev/windlass/pkg/podagent/adapter"
)

// Invoke sends call to the function as one request.
func (a *Adapter) Invoke(ctx context.Context, call *adapter.Call, w adapter.ResultWriter) error {
	length := bodyLength(call)
	m := messages.Get().(*message)
	var err error
	if m.bytes, err = m.appendHead(m.bytes[:0], call, a.addr, length); err != nil {
		m.recycle()
		return fmt.Errorf("%w: %w", adapter.ErrNotStarted, err)
	}
	var whole bool
	m.bytes, whole = takeSmall(m.bytes, call, length)
	c, err := a.send(ctx, m.bytes)
	m.recycle()
	if err != nil {
		return fmt.Errorf("%w: %w", adapter.ErrNotStarted, err)
	}
	x := exchange{call: call, w: w, conn: c}
	if !whole {
		x.up = startUpload(c, call.Body, length)
	}
	reusable, err := x.readAnswer(ctx)
	if c.unwatch() && reusable {
		a.idle.put(c)
	} else {
		c.close()
	}
	return err
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
			// What else went wrong shows when the answer is read.
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
