package main

import (
	"errors"
	"io"
	"net"
	"net/http"
	"time"

	"github.com/windlass-dev/windlass/internal/callwire"
	"github.com/windlass-dev/windlass/internal/rawtcp"
	"github.com/windlass-dev/windlass/pkg/invocation"
)

const (
	// callTime is how long a function may take, and callGrace how much longer a gateway waits
	// for the agent to say that it took longer.
	callTime  = time.Minute
	callGrace = 5 * time.Second
	// mostBody bounds requests, and the answers that a carrier holds as a whole.
	mostBody = callwire.WholeBody
)

// passing are the client's headers as the function sees them, with the call's id. All carriers
// pass the same ones.
func passing(r *http.Request, id invocation.ID, keep func(name, value string)) {
	for name, values := range r.Header {
		switch name {
		case "Connection", "Keep-Alive", "Proxy-Connection", "Te", "Trailer", "Transfer-Encoding", "Upgrade", "Expect", "X-Forwarded-For",
			carrierHeader, invocation.HeaderInvocationID:
			continue
		}
		for _, value := range values {
			keep(name, value)
		}
	}
	if host, _, err := net.SplitHostPort(r.RemoteAddr); err == nil {
		keep("X-Forwarded-For", host)
	}
	keep(invocation.HeaderInvocationID, id.String())
}

var errLargeBody = errors.New("the body is larger than what is measured here")

// wholeBody reads a client's body; nil if there is none.
func wholeBody(r *http.Request) ([]byte, error) {
	if r.ContentLength == 0 {
		return nil, nil
	}
	if r.ContentLength > mostBody {
		return nil, errLargeBody
	}
	b, err := io.ReadAll(io.LimitReader(r.Body, mostBody+1))
	if len(b) > mostBody {
		err = errLargeBody
	}
	return b, err
}

// rawListener accepts connections of package rawtcp, as the product's gateway does.
type rawListener struct{ net.Listener }

// Accept implements net.Listener.
func (l rawListener) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return rawtcp.Wrap(c), nil
}

// unanswered tells a client that there is no answer.
func unanswered(w http.ResponseWriter, err error) {
	http.Error(w, err.Error(), http.StatusBadGateway)
}
