package gateway

import (
	"errors"
	"io"
	"sync"
	"time"

	"github.com/windlass-dev/windlass/internal/callwire"
)

// upload is the body of a request on its way to an instance.
type upload struct {
	out *callwire.Outflow
	// over is closed when the attempt has ended.
	over  chan struct{}
	start sync.Once
	late  *time.Timer
}

// takeBody takes a large body from the attempt before.
func (a *attempt) takeBody() {
	c := a.call
	if c.whole {
		return
	}
	a.upload = &upload{out: callwire.NewOutflow(a.conn.frames, a.wire), over: make(chan struct{})}
	c.client.body.replay.lendTo(a.number)
	if c.expectsContinue() {
		a.upload.late = time.AfterFunc(continueTimeout, a.startUpload)
	}
}

// send sends the call to the instance, and begins to send a large body. The frame is not
// written yet.
func (a *attempt) send() {
	c := a.call
	message := c.wireCall(a.unit, a.number)
	// From here on the reader of the connection may have the answer.
	a.conn.frames.CommitLater(message.Append(a.conn.frames.Begin(), a.wire))
	if !c.whole && message.Upgrade == "" && !message.ExpectContinue {
		a.startUpload()
	}
}

// startUpload begins to send the body, once.
func (a *attempt) startUpload() {
	a.upload.start.Do(func() { go a.sendBody() })
}

// sendBody copies the request's body to the instance: what an earlier attempt has read
// of it, and the rest as it comes.
func (a *attempt) sendBody() {
	left := a.conn.gateway.config.MaxBody
	buffer := bodyBuffers.Get().(*[bodyChunk]byte)
	defer bodyBuffers.Put(buffer)
	for offset := 0; ; {
		n, err := a.call.client.body.readFor(a.number, offset, buffer[:], a.upload.over)
		if errors.Is(err, errReleased) {
			return
		}
		if errors.Is(err, errTooSlow) {
			defer a.abort(tooSlow(), true)
		}
		offset += n
		if left -= int64(n); left < 0 {
			a.abort(tooBig(a.conn.gateway.config.MaxBody), false)
			err = errDetached
		} else if n > 0 {
			if _, failed := a.upload.out.Write(buffer[:n]); failed != nil {
				return
			}
		}
		if err != nil {
			a.endBody(err)
			return
		}
	}
}

// bodyBuffers are for bodies on their way.
var bodyBuffers = sync.Pool{New: func() any { return new([bodyChunk]byte) }}

// endBody says that the body is complete, with its trailers, or why it is not.
func (a *attempt) endBody(why error) {
	end := callwire.End{Cut: !errors.Is(why, io.EOF)}
	if !end.Cut {
		for _, name := range a.call.trailers {
			for _, value := range a.call.client.request.Trailer[name] {
				end.Trailer = append(end.Trailer, callwire.Field{Name: name, Value: value})
			}
		}
	}
	if !a.ended.Load() {
		a.conn.frames.Commit(end.Append(a.conn.frames.Begin(), a.wire))
	}
}
