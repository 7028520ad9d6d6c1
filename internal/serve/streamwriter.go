package serve

import (
	"encoding/binary"
	"math"
	"net"
	"sync"
	"time"

	"golang.org/x/net/http2"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
)

const (
	// writeWithin is how long a write may take. A client that reads nothing meanwhile loses its
	// connection.
	writeWithin = 5 * time.Second
	// windowWithin is how long a message may wait for the client's windows.
	windowWithin = 10 * time.Second
	// keptWriteBuffer bounds what is kept of a buffer for writing, in bytes.
	keptWriteBuffer = 16 << 10
)

var (
	errSlow     = status.Error(codes.ResourceExhausted, "the client did not take a message in time")
	errFinished = status.Error(codes.Internal, "the stream has ended")
)

// writeBuffers are for what is written at once: a connection has none while it is idle.
var writeBuffers = sync.Pool{New: func() any { return new([]byte) }}

// keepWriteBuffer keeps a buffer for the next one who writes, unless it is large.
func keepWriteBuffer(buffer *[]byte) {
	if cap(*buffer) <= keptWriteBuffer {
		writeBuffers.Put(buffer)
	}
}

// frameWriter writes the frames of a connection, from any goroutine. At most one stream sends.
type frameWriter struct {
	to net.Conn
	// broke is called once nothing can be written any more.
	broke func() error

	mu sync.Mutex // held while something is written
	// window is the client's for the connection, and initial that of a new stream.
	window, initial int64
	maxFrame        int
	stream          *agentStream // the one that may send; nil if none
	streamWindow    int64
	begun           bool // its headers were sent
	// room gets something when a window has grown while a message waited; nil if none ever did.
	room   chan struct{}
	failed error
}

// sendFrames writes frames.
func (w *frameWriter) sendFrames(frames []byte) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.write(frames)
}

// write writes frames. The caller holds the lock.
func (w *frameWriter) write(frames []byte) error {
	if w.failed != nil {
		return w.failed
	}
	_ = w.to.SetWriteDeadline(time.Now().Add(writeWithin))
	if _, err := w.to.Write(frames); err != nil {
		w.failed = err
		_ = w.broke()
	}
	return w.failed
}

// letSend lets a stream send.
func (w *frameWriter) letSend(s *agentStream) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.stream, w.streamWindow, w.begun = s, w.initial, false
}

// finish ends the stream that sends, with a status unless its client has reset it.
func (w *frameWriter) finish(s *agentStream, httpStatus int, err error) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.stream = nil
	if s.reset {
		return nil
	}
	return w.write(appendEnd(nil, s.id, httpStatus, status.Convert(err), w.begun, !s.halfClosed))
}

// message sends a message of a stream. It waits for the client's windows, for which the connection
// must be read meanwhile.
func (w *frameWriter) message(s *agentStream, m proto.Message) error {
	buffer := writeBuffers.Get().(*[]byte)
	defer keepWriteBuffer(buffer)
	var prefix [messagePrefix]byte
	b, err := encode(append((*buffer)[:0], prefix[:]...), m)
	if err != nil {
		return status.Error(codes.Internal, err.Error())
	}
	binary.BigEndian.PutUint32(b[1:], uint32(len(b)-messagePrefix))
	*buffer = b
	for rest := b; len(rest) > 0; {
		n, err := w.part(s, rest)
		if err != nil {
			return err
		}
		if rest = rest[n:]; n == 0 {
			if err := w.await(s); err != nil {
				return err
			}
		}
	}
	return nil
}

// part writes as much of a stream's data as the windows allow now.
func (w *frameWriter) part(s *agentStream, data []byte) (n int, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.stream != s {
		return 0, errFinished
	}
	n = int(min(int64(len(data)), int64(w.maxFrame), w.window, w.streamWindow))
	if n <= 0 {
		if w.room == nil {
			w.room = make(chan struct{}, 1)
		}
		return 0, nil
	}
	buffer := writeBuffers.Get().(*[]byte)
	defer keepWriteBuffer(buffer)
	b := (*buffer)[:0]
	if !w.begun {
		w.begun = true
		b = appendFrame(b, http2.FrameHeaders, http2.FlagHeadersEndHeaders, s.id, answerHeaders...)
	}
	b = append(appendFrameHeader(b, n, http2.FrameData, 0, s.id), data[:n]...)
	*buffer = b
	w.window -= int64(n)
	w.streamWindow -= int64(n)
	return n, w.write(b)
}

// await waits until a window has grown. It looks whether the server ends: a handler that sends in its own goroutine receives
// nothing meanwhile, which would tell it.
func (w *frameWriter) await(s *agentStream) error {
	w.mu.Lock()
	room := w.room
	w.mu.Unlock()
	look := time.NewTicker(lookEvery)
	defer look.Stop()
	for late := time.Now().Add(windowWithin); time.Now().Before(late); {
		select {
		case <-room:
			return nil
		case <-s.ended:
			return errFinished
		case <-look.C:
		}
		if s.conn.closing.Load() {
			return errFinished
		}
	}
	s.End(errSlow)
	return errSlow
}

// grown lets a message that waits look again. The caller holds the lock.
func (w *frameWriter) grown() {
	select {
	case w.room <- struct{}{}:
	default: // nothing waits
	}
}

// widen lets a window grow; that of the connection if the stream is 0, and none if it is not the
// one that sends. It is false if the window would be too large.
func (w *frameWriter) widen(stream uint32, by int64) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	switch {
	case stream == 0:
		w.window += by
	case w.stream != nil && w.stream.id == stream:
		w.streamWindow += by
	}
	w.grown()
	return w.window <= math.MaxInt32 && w.streamWindow <= math.MaxInt32
}

// applySetting applies a setting of the client.
func (w *frameWriter) applySetting(s http2.Setting) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	switch s.ID {
	case http2.SettingInitialWindowSize:
		w.streamWindow += int64(s.Val) - w.initial
		w.initial = int64(s.Val)
		w.grown()
		if w.streamWindow > math.MaxInt32 {
			return http2.ConnectionError(http2.ErrCodeFlowControl)
		}
	case http2.SettingMaxFrameSize:
		w.maxFrame = min(int(s.Val), keptWriteBuffer*4)
	}
	return nil
}
