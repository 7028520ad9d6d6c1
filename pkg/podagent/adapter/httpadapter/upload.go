package httpadapter

import (
	"bytes"
	"errors"
	"io"
	"net/http"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/windlass-dev/windlass/pkg/podagent/adapter"
)

const (
	// inlineBody is the largest body that is written together with the head, in bytes. A
	// socket's buffers take as much, so that the write does not wait for the function.
	inlineBody = 16 << 10
	// lastWriteTimeout is how long a call whose answer is complete waits for its body's last
	// write to return, so that its connection can have another call. It is an instant if the
	// function has read the body, and for ever if it has not.
	lastWriteTimeout = 5 * time.Millisecond

	// chunkHead and chunkEnd are the most bytes before and behind the content of a chunk.
	chunkHead = 8
	chunkEnd  = len("\r\n")
)

// upload writes a call's body to the function, in a goroutine of its own: the function may
// answer before it has read the body, and the client may be slow to send it.
type upload struct {
	// done is closed when nothing more is written.
	done chan struct{}
	// last is set before the last write.
	last atomic.Bool

	// refused says that the function took no more, and failure why the body ended early.
	// Both are set before done is closed.
	refused bool
	failure error
}

// takeSmall appends the body to b if it is small and in memory. Whether it did so is the second
// result. It leaves the call's body unread.
func (r request) takeSmall(b []byte) ([]byte, bool) {
	if r.length == 0 {
		return b, true
	}
	whole, ok := r.call.Body.(*bytes.Reader)
	if !ok || int64(whole.Len()) != r.length || r.length > inlineBody {
		return b, false
	}
	rest := *whole
	b = append(b, make([]byte, r.length)...)
	_, err := io.ReadFull(&rest, b[len(b)-int(r.length):])
	return b, err == nil
}

// startUpload begins to write to c, in the way of write.
func startUpload(c *conn, write func(*upload)) *upload {
	u := &upload{done: make(chan struct{})}
	go func() {
		write(u)
		close(u.done)
		if u.failure != nil {
			// Only the end of the connection tells the function that the body was cut.
			c.close()
		}
	}()
	return u
}

// startUpload begins to write the request's body to c.
func (r request) startUpload(c *conn) *upload {
	return startUpload(c, func(u *upload) {
		whole, inMemory := r.call.Body.(*bytes.Reader)
		switch {
		case r.length < 0:
			u.writeChunks(c, r.call.Body, r.call.Trailer)
		case inMemory && int64(whole.Len()) == r.length:
			u.last.Store(true)
			_, err := whole.WriteTo(c.net) // is one write
			u.refused = err != nil
		default:
			u.writeLength(c, r.call.Body, r.length)
		}
	})
}

// writeLength writes a body of a known length, and not a byte more.
func (u *upload) writeLength(c *conn, body io.Reader, left int64) {
	var buffer copyBuffer
	defer buffer.recycle()
	n := 0
	for left > 0 {
		var err error
		p := buffer.next(n)
		n, err = body.Read(p[:min(int64(len(p)), left)])
		left -= int64(n)
		u.last.Store(left == 0)
		if n > 0 && !u.write(c, p[:n]) {
			return
		}
		if err != nil && left > 0 {
			u.failure = unexpected(err)
			return
		}
	}
}

// writeChunks writes a body of unknown length, and its trailers.
func (u *upload) writeChunks(c *conn, body io.Reader, trailer http.Header) {
	var buffer copyBuffer
	defer buffer.recycle()
	n := 0
	for {
		var err error
		p := buffer.next(n)
		n, err = body.Read(p[chunkHead : len(p)-chunkEnd])
		if n > 0 && !u.write(c, chunk(p, n)) {
			return
		}
		if err == io.EOF {
			u.last.Store(true)
			u.writeLastChunk(c, trailer)
			return
		}
		if err != nil {
			u.failure = err
			return
		}
	}
}

func (u *upload) writeLastChunk(c *conn, trailer http.Header) {
	m := messages.Get().(*message)
	defer m.recycle()
	m.bytes = append(m.bytes[:0], "0\r\n"...)
	for _, f := range adapter.FieldsOf(trailer) {
		if m.bytes, u.failure = appendValid(m.bytes, f.Name, f.Value); u.failure != nil {
			return
		}
	}
	m.bytes = append(m.bytes, "\r\n"...)
	u.write(c, m.bytes)
}

// writeStream writes what the client sends in a protocol to which the function has switched, and
// passes on that the client ends its half.
func (u *upload) writeStream(c *conn, body io.Reader) {
	var buffer copyBuffer
	defer buffer.recycle()
	n := 0
	for {
		var err error
		p := buffer.next(n)
		n, err = body.Read(p)
		if n > 0 && !u.write(c, p[:n]) {
			return
		}
		if err == io.EOF {
			c.closeWrite()
			return
		}
		if err != nil {
			u.failure = err
			return
		}
	}
}

// chunk is the part of p that is the chunk of the n bytes behind its first chunkHead.
func chunk(p []byte, n int) []byte {
	var size [chunkHead]byte
	head := append(strconv.AppendInt(size[:0], int64(n), 16), "\r\n"...)
	from := chunkHead - len(head)
	copy(p[from:], head)
	return append(p[:chunkHead+n], "\r\n"...)[from:]
}

// write reports whether the function takes more. If it does not, it may have answered before
// that: reading finds the answer or the error.
func (u *upload) write(c *conn, p []byte) bool {
	_, err := c.net.Write(p)
	u.refused = err != nil
	return err == nil
}

// finished reports whether the function has got the whole body. Only if all of it was written
// or is being written it waits for that.
func (u *upload) finished() bool {
	if u == nil {
		return true
	}
	select {
	case <-u.done:
	default:
		if !u.last.Load() {
			return false
		}
		late := time.NewTimer(lastWriteTimeout)
		defer late.Stop()
		select {
		case <-u.done:
		case <-late.C:
			return false
		}
	}
	return !u.refused && u.failure == nil
}

// cause is why the call's body ended early; nil if it did not.
func (u *upload) cause() error {
	if u == nil {
		return nil
	}
	select {
	case <-u.done:
		return u.failure
	default:
		return nil
	}
}

// unexpected is err, which is not EOF: the body was to be longer.
func unexpected(err error) error {
	if errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	return err
}
