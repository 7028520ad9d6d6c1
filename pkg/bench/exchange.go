package bench

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"time"
)

// newRequest makes the request that has the target work for d.
func newRequest(gateway string, t Target, d time.Duration) (*http.Request, error) {
	request, err := http.NewRequest(t.Method, gateway+t.Path(d), nil)
	if err != nil {
		return nil, err
	}
	for name, values := range t.Header {
		request.Header[name] = values
	}
	var body []byte
	if t.Body != nil {
		body = t.Body(d)
	}
	sendOnce(request, body)
	return request, nil
}

// sendOnce gives the request a body that can be read only once, even if it is
// empty. A transport silently repeats a request without a body when a reused
// connection breaks, and then a call that was lost would look like one that
// was not.
func sendOnce(request *http.Request, body []byte) {
	request.Body = io.NopCloser(bytes.NewReader(body))
	request.ContentLength = int64(len(body))
}

// exchange makes one round trip and reads the answer to its end. Redirects are
// answers like any other.
func exchange(transport http.RoundTripper, request *http.Request) (int, http.Header, error) {
	response, err := transport.RoundTrip(request)
	if err != nil {
		return 0, nil, err
	}
	defer response.Body.Close()
	if _, err := io.Copy(io.Discard, response.Body); err != nil {
		return 0, nil, err
	}
	return response.StatusCode, response.Header, nil
}

// cause is the innermost text of an error, which is without the addresses that
// would make every error a different one.
func cause(err error) string {
	if errors.Is(err, context.DeadlineExceeded) {
		return "timed out"
	}
	for {
		inner := errors.Unwrap(err)
		if inner == nil {
			return err.Error()
		}
		err = inner
	}
}
