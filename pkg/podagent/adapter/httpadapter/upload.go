package httpadapter

import (
	"bytes"
	"errors"
	"io"
	"net/http"
	"sync"

	"github.com/windlass-dev/windlass/pkg/podagent/adapter"
)

var errUploadStopped = errors.New("the function takes no more of the call's body")

// upload is a call's body on its way to the function. It reads the body in a
// goroutine of its own, so that the transport never waits for the client when
// the function has ended; that goroutine starts with the first Read, and ends
// at the latest when the read that it is in returns.
type upload struct {
	src io.Reader
	// small is set instead if the body is in memory: it cannot wait.
	small *bytes.Reader
	// length in bytes; -1 if unknown.
	length int64

	pr *io.PipeReader
	pw *io.PipeWriter

	mu      sync.Mutex
	pumping bool
	stopped bool
	err     error
}

func newUpload(call *adapter.Call) *upload {
	u := &upload{src: call.Body, length: call.ContentLength}
	if whole, ok := call.Body.(*bytes.Reader); ok {
		rest := *whole
		u.small = &rest
		if u.length < 0 {
			u.length = int64(rest.Len())
		}
		return u
	}
	if u.length != 0 {
		u.pr, u.pw = io.Pipe()
	}
	return u
}

// body is what to give to the transport. It writes a body of a type that it
// knows together with the head.
func (u *upload) body() io.ReadCloser {
	switch {
	case u.length == 0:
		return http.NoBody
	case u.small != nil:
		return io.NopCloser(u.small)
	}
	return u
}

// Read reads what the goroutine has read.
func (u *upload) Read(p []byte) (int, error) {
	u.mu.Lock()
	if !u.pumping && !u.stopped {
		u.pumping = true
		go u.pump()
	}
	u.mu.Unlock()
	return u.pr.Read(p)
}

// Close does nothing: the transport closes a body that it did not read, too.
func (u *upload) Close() error { return nil }

func (u *upload) pump() {
	buf := make([]byte, copyBytes)
	for {
		n, err := u.src.Read(buf)
		if n > 0 {
			if _, werr := u.pw.Write(buf[:n]); werr != nil {
				return
			}
		}
		if err == io.EOF {
			_ = u.pw.Close()
			return
		}
		if err != nil {
			u.mu.Lock()
			u.err = err
			u.mu.Unlock()
			_ = u.pw.CloseWithError(err)
			return
		}
	}
}

// stop ends the upload; the unread rest stays unread.
func (u *upload) stop() {
	if u.pr == nil {
		return
	}
	u.mu.Lock()
	u.stopped = true
	u.mu.Unlock()
	_ = u.pr.CloseWithError(errUploadStopped)
}

// started reports whether some of the call's body may have been sent.
func (u *upload) started() bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.pumping
}

// failure is the error of the call's body, if it had one.
func (u *upload) failure() error {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.err
}
