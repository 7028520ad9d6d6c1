package callwire

import "time"

const (
	// pendingLimit is how much may wait to be written before parts of bodies have to wait, in
	// bytes. Other frames do not wait: there are a few for each call.
	pendingLimit = 256 << 10
	// unreadLimit is how much may wait before an accepted connection reads no more, in bytes.
	// Bodies alone never come that far, so that they do not hold up answers.
	unreadLimit = 1 << 20
	// writePart is how much is written at a time, in bytes, and writeWithin how long that may
	// take. The other side reads without waiting for anybody, so if it takes longer, it has
	// stopped or is gone with its node. The kernel would try for a quarter of an hour.
	writePart   = 256 << 10
	writeWithin = pingAfter + pongWithin
	// ownRounds is how often a goroutine that has written its own frames also writes those that
	// came meanwhile, before another goroutine does: it has a call to take care of.
	ownRounds = 4
)

// Begin takes the lock of the writing side and returns the buffer to append frames to. Commit
// or CommitLater must follow. In between the caller may take no other lock.
func (c *Conn) Begin() []byte {
	c.mu.Lock()
	return c.pending
}

// Commit takes the buffer with the new frames, and writes it unless another goroutine is
// writing, which then does. An error breaks the connection, which Read reports.
func (c *Conn) Commit(b []byte) {
	c.pending = b
	c.flush()
}

// CommitLater is Commit without writing; Flush must follow soon.
func (c *Conn) CommitLater(b []byte) {
	c.pending = b
	c.mu.Unlock()
}

// Flush writes what CommitLater left.
func (c *Conn) Flush() {
	c.mu.Lock()
	c.flush()
}

// FlushLater is Flush in a goroutine of its own, for callers that must not wait for the other side.
// One is the agent's reader: while it never waits for a write, no two readers can wait for each other.
func (c *Conn) FlushLater() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.startWriting() {
		go c.writeRest()
	}
}

// openLater opens the window of a call by n bytes, without waiting for the write.
func (c *Conn) openLater(call, n uint32) {
	if n > 0 {
		c.CommitLater(AppendCount(c.Begin(), KindWindow, call, n))
		c.FlushLater()
	}
}

// flush writes what is pending, unless another goroutine does. The caller holds the lock, which
// flush releases.
func (c *Conn) flush() {
	defer c.mu.Unlock()
	if !c.startWriting() {
		return
	}
	for range ownRounds {
		if c.writePending(); len(c.pending) == 0 {
			c.stopWriting()
			return
		}
	}
	go c.writeRest()
}

// writeRest goes on writing until nothing is pending.
func (c *Conn) writeRest() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for len(c.pending) > 0 {
		c.writePending()
	}
	c.stopWriting()
}

// startWriting reports whether the caller has to write what is pending: if so, nobody else
// writes until stopWriting. The caller holds the lock.
func (c *Conn) startWriting() bool {
	if c.shut || c.broken != nil {
		c.pending = nil
	}
	if c.writing || len(c.pending) == 0 {
		return false
	}
	c.writing = true
	return true
}

// stopWriting is the end of startWriting. The caller holds the lock.
func (c *Conn) stopWriting() {
	c.writing = false
	c.room.Broadcast()
}

// writePending writes what is pending now. It releases the lock meanwhile.
func (c *Conn) writePending() {
	out := c.pending
	c.pending, c.spare = c.spare[:0], nil
	c.mu.Unlock()
	if err := c.writeOut(out); err != nil {
		c.breakWith(err)
	}
	c.mu.Lock()
	if cap(out) <= keptBuffer {
		c.spare = out[:0]
	}
	if c.broken != nil {
		c.pending = nil
	}
	c.room.Broadcast()
}

// writeOut writes b in parts. Only one goroutine at a time may call it, without the lock.
func (c *Conn) writeOut(b []byte) error {
	for len(b) > 0 {
		if now := time.Now(); now.Sub(c.timed) > writeWithin/4 {
			c.timed = now
			_ = c.net.SetWriteDeadline(now.Add(writeWithin))
		}
		n, err := c.net.Write(b[:min(len(b), writePart)])
		if err != nil {
			return err
		}
		b = b[n:]
	}
	return nil
}

// sendBody appends a part of a body once there is room, and writes it.
func (c *Conn) sendBody(call uint32, part []byte) error {
	c.mu.Lock()
	for len(c.pending) > pendingLimit && c.writing && c.broken == nil {
		c.room.Wait()
	}
	if c.broken != nil || c.shut {
		defer c.mu.Unlock()
		if c.broken != nil {
			return c.broken
		}
		return ErrClosed
	}
	c.Commit(AppendBody(c.pending, call, part))
	return nil
}

// awaitWriter waits while too much waits to be written.
func (c *Conn) awaitWriter() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for len(c.pending) > unreadLimit && c.writing && c.broken == nil {
		c.room.Wait()
	}
}

// CloseWrite writes what is pending, and says that nothing more will be written; what is
// committed later is dropped. The other side reads everything that came before and closes the
// connection, so that Read returns an error that is io.EOF. All that may take as long as within;
// then the connection is closed. CloseWrite returns when everything is written, or it is closed.
func (c *Conn) CloseWrite(within time.Duration) {
	time.AfterFunc(within, c.Close)
	c.mu.Lock()
	for c.writing || len(c.pending) > 0 && c.broken == nil {
		if c.startWriting() {
			c.writePending()
			c.stopWriting()
			continue
		}
		if c.writing {
			c.room.Wait()
		}
	}
	c.shut = true
	c.mu.Unlock()
	half, ok := c.net.(interface{ CloseWrite() error })
	if !ok || half.CloseWrite() != nil {
		c.Close()
	}
}
