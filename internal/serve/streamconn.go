package serve

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"sync/atomic"
	"time"

	"golang.org/x/net/http2"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/peer"
	"google.golang.org/grpc/status"

	"github.com/windlass-dev/windlass/api/wire"
)

const (
	// maxIdleFrames is how many frames that belong to no message may come without a message
	// between them, in idleFramesWithin: pings, settings, resets, refused streams and such.
	maxIdleFrames    = 1000
	idleFramesWithin = 10 * time.Second
	// frameWithin is how long the rest of a frame may take when the stream was ended meanwhile.
	frameWithin = time.Second
	// receiveWindow is that of a connection and of a stream, in bytes, as gRPC's server has it for a
	// stream: agents never wait for it while they hold a lock. firstWindow is HTTP/2's.
	receiveWindow, firstWindow = wire.StreamWindow, 65535
	// noMethod is what a connection without a stream is counted as.
	noMethod = "none"
)

var (
	errReset = errors.New("serve: the client has ended the stream")
	errLate  = errors.New("serve: nothing came in time")
	errEnded = errors.New("serve: the stream was ended")
)

// connFault is why a connection ends, for its client.
type connFault struct {
	code http2.ErrCode
	text string
}

func (f connFault) Error() string { return fmt.Sprintf("serve: %v: %s", f.code, f.text) }

// streamConn is a connection on which an agent opens its stream: one at a time, since it
// needs no more. One goroutine serves it, which also is the handler's of its stream: it deals with
// frames while the handler receives, and nothing is read as long as it does not. Everything is
// that goroutine's but what says otherwise.
type streamConn struct {
	server *streamServer
	peer   *agentPeer
	in     io.Reader
	// out is for any goroutine, and closing says that the server ends.
	out     frameWriter
	closing atomic.Bool

	// header is that of the next frame, and got is how many of its bytes have come.
	header [frameHeaderLen]byte
	got    int
	// frame holds the frame that came last, as long as its data is used.
	frame *frameReader
	// until is when the next read must have ended, and grace when the rest of a frame must have
	// come although nobody wants it any more. Both are zero mostly.
	until, grace time.Time
	// undecided says that no stream has come. What has come waits in replay, should gRPC's
	// server get the connection, and unacknowledged counts the settings in it.
	undecided      bool
	method         string // that of its first stream, and so of all; "" while it is undecided
	replay         []byte
	unacknowledged int

	stream     *agentStream // nil if there is none
	broken     error        // why the connection ends, found while the stream's handler received
	last       uint32       // the number of the newest stream
	unreturned int          // bytes of data that the client's window was not given back
	idleFrames int          // since idleSince, without a message
	idleSince  time.Time
}

func newStreamConn(s *streamServer, peer *agentPeer) *streamConn {
	c := &streamConn{server: s, peer: peer, undecided: true}
	c.out.broke = peer.Close
	c.out.window, c.out.initial, c.out.maxFrame = firstWindow, firstWindow, minFrame
	return c
}

// wake lets a read that waits look for what has happened.
func (c *streamConn) wake() { _ = c.peer.SetReadDeadline(time.Unix(1, 0)) }

// converse serves streams until the connection ends.
func (c *streamConn) converse(auth credentials.AuthInfo) {
	r, err := c.greet()
	if _, ours := c.server.methods[r.path]; err == nil && !ours {
		c.letGo()
		c.server.handOver(c, auth)
		return
	}
	if err == nil {
		c.decide(r.path)
	}
	for err == nil {
		if err = c.serveStream(r); err == nil {
			r, err = c.nextStream()
		}
	}
	c.part(err)
}

// greet says what this side allows, and returns the first stream.
func (c *streamConn) greet() (request, error) {
	if err := c.out.sendFrames(serverSettings); err != nil {
		return request{}, err
	}
	c.until = time.Now().Add(handshakeWithin)
	for preface := make([]byte, len(http2.ClientPreface)); len(c.replay) < len(preface); {
		if _, err := c.read(preface[len(c.replay):], true); err != nil {
			return request{}, err
		}
	}
	if string(c.replay) != http2.ClientPreface {
		return request{}, io.ErrUnexpectedEOF
	}
	return c.nextStream()
}

// decide makes the connection one for streams of a method.
func (c *streamConn) decide(method string) {
	c.undecided, c.method, c.replay, c.until = false, method, nil, time.Time{}
	frames := appendWindow(nil, 0, receiveWindow-firstWindow)
	for ; c.unacknowledged > 0; c.unacknowledged-- {
		frames = append(frames, settingsAck...)
	}
	_ = c.out.sendFrames(frames) // if it fails, so does the next read
}

// part ends the connection, and says why.
func (c *streamConn) part(why error) {
	c.letGo()
	c.server.forget(c)
	var fault connFault
	switch {
	case errors.Is(why, errShutdown), errors.Is(why, errLate):
		_ = c.out.sendFrames(appendGoAway(nil, c.last, http2.ErrCodeNo, ""))
	case errors.As(why, &fault):
		_ = c.out.sendFrames(appendGoAway(nil, c.last, fault.code, fault.text))
	case errors.Is(why, errUnproven):
		c.countRefusal(status.Error(codes.ResourceExhausted, why.Error()))
	}
	_ = c.out.to.Close()
	_ = c.peer.Close()
}

func (c *streamConn) countRefusal(err error) {
	c.server.wire.guard.countRefusal(cmp.Or(c.method, noMethod), err)
}

// nextStream waits for a stream. What comes of earlier ones is dropped. A client that has had one may
// come back for idleFor.
func (c *streamConn) nextStream() (request, error) {
	if !c.undecided {
		c.until = time.Now().Add(idleFor)
	}
	for {
		r, err := c.nextFrame()
		if err != nil || r.id != 0 {
			return r, err
		}
		if c.undecided {
			c.until = time.Time{} // its settings have come
		}
	}
}

// nextFrame reads a frame and deals with it. It returns a stream that the frame opens. An error
// is one of this file, or ends the connection.
func (c *streamConn) nextFrame() (opened request, err error) {
	c.letGo()
	mark := len(c.replay)
	for c.got < len(c.header) {
		n, err := c.read(c.header[c.got:], c.got == 0)
		if err != nil {
			return opened, err
		}
		c.got += n
	}
	c.got = 0
	c.frame = frameReaders.Get().(*frameReader)
	f, err := c.frame.read(c.header[:], c)
	if err != nil {
		return opened, c.misread(err)
	}
	opened, err = c.dispatch(f)
	if c.undecided && !isReplayed(f) {
		c.replay = c.replay[:mark]
	}
	return opened, err
}

// isReplayed reports whether gRPC's server must see a frame, since this one has not answered it.
func isReplayed(f http2.Frame) bool {
	settings, is := f.(*http2.SettingsFrame)
	return f.Header().Type != http2.FramePing && !(is && settings.IsAck())
}

// letGo gives back what the last frame was read into.
func (c *streamConn) letGo() {
	if c.frame == nil {
		return
	}
	if c.stream != nil {
		c.stream.keep()
	}
	c.frame.from = nil
	frameReaders.Put(c.frame)
	c.frame = nil
}

// misread is what an error of the framer means.
func (c *streamConn) misread(err error) error {
	c.frame = nil // it is in the middle of something
	var fault http2.ConnectionError
	var ofStream http2.StreamError
	switch {
	case errors.As(err, &fault):
		return connFault{http2.ErrCode(fault), "the frame is not valid"}
	case errors.Is(err, http2.ErrFrameTooLarge):
		return connFault{http2.ErrCodeFrameSize, "the frame is too large"}
	case errors.As(err, &ofStream):
		c.last = max(c.last, ofStream.StreamID)
		if err := c.out.sendFrames(appendReset(nil, ofStream.StreamID, ofStream.Code)); err != nil {
			return err
		}
		if c.stream != nil && c.stream.id == ofStream.StreamID {
			return errReset
		}
		return c.countIdle()
	}
	return err
}

// Read reads the rest of a frame.
func (c *streamConn) Read(p []byte) (int, error) { return c.read(p, false) }

// read reads something. Between frames it also returns if something has happened that ends what
// is waited for.
func (c *streamConn) read(p []byte, between bool) (int, error) {
	for {
		if err := c.watch(between); err != nil {
			return 0, err
		}
		n, err := c.in.Read(p)
		switch {
		case n > 0:
			if c.undecided {
				c.replay = append(c.replay, p[:n]...)
			}
			return n, nil
		case err != nil && !isTimeout(err):
			return 0, err
		}
	}
}

func isTimeout(err error) bool {
	var late net.Error
	return errors.As(err, &late) && late.Timeout()
}

// watch prepares a read, and returns why there must be none. It sets the deadline before it
// looks: a goroutine that has a reason sets it afterwards.
func (c *streamConn) watch(between bool) error {
	_ = c.peer.SetReadDeadline(c.until)
	why := c.interruption()
	switch {
	case why == nil:
		c.grace = time.Time{}
		return nil
	case between:
		c.grace = time.Time{}
		return why
	case c.grace.IsZero():
		c.grace = time.Now().Add(frameWithin)
	case !time.Now().Before(c.grace):
		return io.ErrUnexpectedEOF
	}
	_ = c.peer.SetReadDeadline(c.grace)
	return nil
}

// interruption is why nothing is waited for any more; nil if there is no reason.
func (c *streamConn) interruption() error {
	switch {
	case c.closing.Load():
		return errShutdown
	case c.stream != nil && c.stream.why.Load() != nil:
		return errEnded
	case !c.until.IsZero() && !time.Now().Before(c.until):
		return errLate
	}
	return nil
}

// countIdle counts a frame that belongs to no message. Too many of them end the connection.
func (c *streamConn) countIdle() error {
	if now := time.Now(); now.Sub(c.idleSince) > idleFramesWithin {
		c.idleSince, c.idleFrames = now, 0
	}
	if c.idleFrames++; c.idleFrames > maxIdleFrames {
		c.countRefusal(status.Error(codes.ResourceExhausted, "too many frames without a message"))
		return connFault{http2.ErrCodeEnhanceYourCalm, "too many frames without a message"}
	}
	return nil
}

// dispatch deals with a frame.
func (c *streamConn) dispatch(f http2.Frame) (opened request, err error) {
	switch f := f.(type) {
	case *http2.DataFrame:
		return opened, c.onData(f)
	case *http2.MetaHeadersFrame:
		return c.onHeaders(f)
	}
	if err := c.countIdle(); err != nil {
		return opened, err
	}
	switch f := f.(type) {
	case *http2.SettingsFrame:
		err = c.onSettings(f)
	case *http2.PingFrame:
		if !f.IsAck() {
			err = c.out.sendFrames(appendFrame(nil, http2.FramePing, http2.FlagPingAck, 0, f.Data[:]...))
		}
	case *http2.WindowUpdateFrame:
		err = c.onWindow(f)
	case *http2.RSTStreamFrame:
		switch s := c.stream; {
		case f.StreamID > c.last:
			err = connFault{http2.ErrCodeProtocol, "a stream is reset that was never opened"}
		case s != nil && s.id == f.StreamID:
			err = errReset
		}
	case *http2.PushPromiseFrame:
		err = connFault{http2.ErrCodeProtocol, "clients promise nothing"}
	}
	return opened, err // others mean nothing to this server
}

// onData lets the stream have its data, and gives the client's windows back.
func (c *streamConn) onData(f *http2.DataFrame) error {
	s, n := c.stream, int(f.Length)
	switch {
	case f.StreamID > c.last:
		return connFault{http2.ErrCodeProtocol, "data of a stream that was never opened"}
	case s == nil || s.id != f.StreamID || len(f.Data()) == 0 && !f.StreamEnded():
		if err := c.countIdle(); err != nil {
			return err
		}
	}
	var back []byte
	if c.unreturned += n; c.unreturned > receiveWindow {
		return connFault{http2.ErrCodeFlowControl, "more data than the window allows"}
	}
	if c.unreturned > receiveWindow/2 {
		back = appendWindow(back, 0, c.unreturned)
		c.unreturned = 0
	}
	if s != nil && s.id == f.StreamID {
		if s.halfClosed {
			return connFault{http2.ErrCodeStreamClosed, "data after the end of the stream"}
		}
		s.came(f.Data(), f.StreamEnded())
		if s.unreturned += n; s.unreturned > receiveWindow/2 {
			back = appendWindow(back, s.id, s.unreturned)
			s.unreturned = 0
		}
	}
	if back == nil {
		return nil
	}
	return c.out.sendFrames(back)
}

// onHeaders returns the stream that headers open. There is one at a time; the client knows.
func (c *streamConn) onHeaders(f *http2.MetaHeadersFrame) (opened request, err error) {
	id, s := f.StreamID, c.stream
	switch {
	case s != nil && s.id == id:
		if s.halfClosed || !f.StreamEnded() {
			return opened, connFault{http2.ErrCodeProtocol, "headers within a stream"}
		}
		s.halfClosed = true
		return opened, c.countIdle()
	case id%2 == 0 || id <= c.last:
		return opened, connFault{http2.ErrCodeProtocol, "the number of the stream is not a new one"}
	}
	c.last = id
	if err := c.countIdle(); err != nil {
		return opened, err
	}
	if s == nil {
		return requestOf(f), nil
	}
	c.countRefusal(status.Error(codes.ResourceExhausted, "the connection has a stream"))
	return opened, c.out.sendFrames(appendReset(nil, id, http2.ErrCodeRefusedStream))
}

func (c *streamConn) onSettings(f *http2.SettingsFrame) error {
	if f.IsAck() {
		return nil
	}
	err := f.ForeachSetting(func(s http2.Setting) error {
		if err := s.Valid(); err != nil {
			return err
		}
		return c.out.applySetting(s)
	})
	var fault http2.ConnectionError
	switch {
	case errors.As(err, &fault):
		return connFault{http2.ErrCode(fault), "the settings are not valid"}
	case err != nil:
		return err
	case c.undecided:
		c.unacknowledged++
		return nil
	}
	return c.out.sendFrames(settingsAck)
}

func (c *streamConn) onWindow(f *http2.WindowUpdateFrame) error {
	if f.StreamID > c.last {
		return connFault{http2.ErrCodeProtocol, "a window of a stream that was never opened"}
	}
	if !c.out.widen(f.StreamID, int64(f.Increment)) {
		return connFault{http2.ErrCodeFlowControl, "the window is too large"}
	}
	return nil
}

// withPeer adds the client to a context.
func (c *streamConn) withPeer(ctx context.Context) context.Context {
	p := &peer.Peer{Addr: c.peer.RemoteAddr(), LocalAddr: c.peer.LocalAddr()}
	if secured, ok := c.out.to.(interface{ ConnectionState() tls.ConnectionState }); ok {
		p.AuthInfo = credentials.TLSInfo{
			State: secured.ConnectionState(), CommonAuthInfo: credentials.CommonAuthInfo{SecurityLevel: credentials.PrivacyAndIntegrity},
		}
	}
	return peer.NewContext(ctx, p)
}
