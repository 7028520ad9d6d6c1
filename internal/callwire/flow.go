package callwire

import (
	"errors"
	"fmt"
	"io"
	"sync"
)

// ErrBodyEnded says that nobody wants more of a body.
var ErrBodyEnded = errors.New("callwire: nobody reads the body")

// Outflow sends the parts of one body, as far as the receiver's window allows. When the
// connection ends, its reader must End the outflows of its calls.
type Outflow struct {
	conn *Conn
	call uint32

	mu     sync.Mutex
	opened sync.Cond
	window int
	ended  error // why nothing more is sent
}

// NewOutflow makes the outflow of a call.
func NewOutflow(c *Conn, call uint32) *Outflow {
	o := &Outflow{conn: c, call: call, window: InitialWindow}
	o.opened.L = &o.mu
	return o
}

// Write sends p, and waits while the window is closed. It implements io.Writer.
func (o *Outflow) Write(p []byte) (sent int, err error) {
	for sent < len(p) {
		n, err := o.take(min(MaxBody, len(p)-sent))
		if err != nil {
			return sent, err
		}
		if err := o.conn.sendBody(o.call, p[sent:sent+n]); err != nil {
			return sent, err
		}
		sent += n
	}
	return sent, nil
}

// take takes up to most bytes of the window, at least one.
func (o *Outflow) take(most int) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for o.window <= 0 && o.ended == nil {
		o.opened.Wait()
	}
	if o.ended != nil {
		return 0, o.ended
	}
	n := min(most, o.window)
	o.window -= n
	return n, nil
}

// Open opens the window by n bytes. The reader of the connection calls it for each Window.
func (o *Outflow) Open(n uint32) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.window = min(o.window+int(min(n, InitialWindow)), InitialWindow)
	o.opened.Broadcast()
}

// End lets Write fail from now on; nil stands for ErrBodyEnded.
func (o *Outflow) End(why error) {
	if why == nil {
		why = ErrBodyEnded
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.ended == nil {
		o.ended = why
		o.opened.Broadcast()
	}
}

// Inflow holds the parts of one body that came and were not read. It implements io.Reader.
type Inflow struct {
	conn *Conn
	call uint32

	mu      sync.Mutex
	changed sync.Cond
	held    []byte // came and was not read
	from    int    // of held, the first byte that was not read
	read    int    // bytes that were read since the window was opened last
	end     error  // follows held; nil while more may come
	trailer []Field
	discard bool
}

// NewInflow makes the inflow of a call.
func NewInflow(c *Conn, call uint32) *Inflow {
	i := &Inflow{conn: c, call: call}
	i.changed.L = &i.mu
	return i
}

// Push takes a part that came. It fails if the sender has exceeded the window, or goes on after
// a whole body. It drops what comes after any other end, which the sender may not know of yet.
func (i *Inflow) Push(part []byte) error {
	i.mu.Lock()
	defer i.mu.Unlock()
	switch {
	case i.end != nil && Whole(i.end):
		return fmt.Errorf("%w: a part of a body came after its end", ErrFrame)
	case i.end != nil:
		return nil
	case i.discard:
		i.conn.openLater(i.call, i.passedOn(len(part)))
		return nil
	case len(i.held)-i.from+i.read+len(part) > InitialWindow:
		return fmt.Errorf("%w: a body has exceeded its window", ErrFrame)
	}
	if i.from > 0 && len(i.held)+len(part) > cap(i.held) {
		i.held = i.held[:copy(i.held, i.held[i.from:])]
		i.from = 0
	}
	i.held = append(i.held, part...)
	i.changed.Broadcast()
	return nil
}

// End says what follows the parts that came: io.EOF after a whole body, with its trailers, or
// why the rest will not come. Only the first end counts.
func (i *Inflow) End(why error, trailer []Field) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.end == nil {
		i.end, i.trailer = why, trailer
		i.changed.Broadcast()
	}
}

// Read implements io.Reader.
func (i *Inflow) Read(p []byte) (int, error) {
	n, opened, err := i.take(p)
	if opened > 0 {
		i.conn.Commit(AppendCount(i.conn.Begin(), KindWindow, i.call, opened))
	}
	return n, err
}

// take is Read; opened is by how much to open the window again. It holds the lock, which the
// reader of the connection waits for, so it writes nothing.
func (i *Inflow) take(p []byte) (n int, opened uint32, err error) {
	i.mu.Lock()
	defer i.mu.Unlock()
	for i.from == len(i.held) && i.end == nil && !i.discard {
		i.changed.Wait()
	}
	switch {
	case i.discard:
		return 0, 0, ErrBodyEnded
	case i.from == len(i.held):
		return 0, 0, i.end
	}
	n = copy(p, i.held[i.from:])
	if i.from += n; i.from == len(i.held) {
		i.held, i.from = i.held[:0], 0
	}
	return n, i.passedOn(n), nil
}

// passedOn counts bytes that were passed on, and returns by how much to open the window: once
// a quarter of it was passed on, by that. The caller holds the lock.
func (i *Inflow) passedOn(n int) (opened uint32) {
	if i.read += n; i.read < InitialWindow/4 || i.end != nil {
		return 0
	}
	opened, i.read = uint32(i.read), 0
	return opened
}

// Buffered reports whether Read would return a part without waiting.
func (i *Inflow) Buffered() bool {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.from < len(i.held)
}

// Discard drops what was not read, and what comes from now on. Read returns ErrBodyEnded.
func (i *Inflow) Discard() {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.discard {
		return
	}
	i.discard = true
	dropped := len(i.held) - i.from
	i.held, i.from = nil, 0
	i.conn.openLater(i.call, i.passedOn(dropped))
	i.changed.Broadcast()
}

// Trailer returns the trailers of a body whose Read has returned io.EOF.
func (i *Inflow) Trailer() []Field {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.trailer
}

// Whole reports whether an error of Read says that the body was whole.
func Whole(err error) bool { return errors.Is(err, io.EOF) }
