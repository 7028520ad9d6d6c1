package lambda

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"

	"github.com/windlass-dev/windlass/pkg/podagent/adapter"
)

const (
	// httpResponse is the media type of an answer that begins with its own
	// status and headers.
	httpResponse = "application/vnd.awslambda.http-integration-response"
	// maxPrelude bounds them in bytes.
	maxPrelude = 1 << 20
)

// preludeEnd stands between the prelude and the body.
var preludeEnd = make([]byte, 8)

// badPrelude is an answer whose prelude is none.
type badPrelude struct{ reason string }

func (e *badPrelude) Error() string {
	return "the " + httpResponse + " answer " + e.reason
}

// readPrelude reads the head that the answer r begins with and leaves the body.
func readPrelude(r *bufio.Reader) (adapter.Head, error) {
	var text []byte
	for !bytes.HasSuffix(text, preludeEnd) {
		part, err := r.ReadSlice(0)
		text = append(text, part...)
		if len(text) > maxPrelude {
			return adapter.Head{}, &badPrelude{fmt.Sprintf("has a prelude larger than %d bytes", maxPrelude)}
		}
		if errors.Is(err, io.EOF) {
			return adapter.Head{}, &badPrelude{"has no eight zero bytes behind its prelude"}
		}
		if err != nil && !errors.Is(err, bufio.ErrBufferFull) {
			return adapter.Head{}, err
		}
	}
	return parsePrelude(bytes.TrimSuffix(text, preludeEnd))
}

func parsePrelude(text []byte) (adapter.Head, error) {
	prelude := struct {
		StatusCode int                        `json:"statusCode"`
		Headers    map[string]json.RawMessage `json:"headers"`
		Cookies    []string                   `json:"cookies"`
	}{StatusCode: http.StatusOK}
	if err := json.Unmarshal(text, &prelude); err != nil {
		return adapter.Head{}, &badPrelude{"has a prelude that is not valid: " + err.Error()}
	}
	if prelude.StatusCode < 200 || prelude.StatusCode > 599 {
		return adapter.Head{}, &badPrelude{fmt.Sprintf("has the status %d, want 200 to 599", prelude.StatusCode)}
	}
	h, size := http.Header{}, 0
	for name, raw := range prelude.Headers {
		value, ok := headerValue(raw)
		if !ok || !isToken(name) {
			return adapter.Head{}, &badPrelude{fmt.Sprintf("has a header %q that is not valid", name)}
		}
		if !aboutConnection[http.CanonicalHeaderKey(name)] {
			h.Set(name, value)
			size += len(name) + len(value)
		}
	}
	for _, cookie := range prelude.Cookies {
		if !isFieldValue(cookie) {
			return adapter.Head{}, &badPrelude{"has a cookie that is not valid"}
		}
		h.Add("Set-Cookie", cookie)
		size += len("Set-Cookie") + len(cookie)
	}
	if size > maxPrelude { // in place of a byte that is no text, JSON has three
		return adapter.Head{}, &badPrelude{fmt.Sprintf("has headers larger than %d bytes", maxPrelude)}
	}
	if h.Get("Content-Type") == "" {
		h.Set("Content-Type", "application/octet-stream")
	}
	return adapter.Head{Status: prelude.StatusCode, Header: adapter.FieldsOf(h), ContentLength: -1}, nil
}

// aboutConnection are the headers that say how a message is sent, which is not
// the function's to say here.
var aboutConnection = map[string]bool{
	"Connection": true, "Content-Length": true, "Keep-Alive": true, "Proxy-Authenticate": true,
	"Proxy-Authorization": true, "Proxy-Connection": true, "Te": true, "Trailer": true,
	"Transfer-Encoding": true, "Upgrade": true,
}

// headerValue is the value of a header: a string, or a number or a boolean as
// it is written.
func headerValue(raw json.RawMessage) (string, bool) {
	var v any
	if json.Unmarshal(raw, &v) != nil {
		return "", false
	}
	switch v := v.(type) {
	case string:
		return v, isFieldValue(v)
	case float64, bool:
		return string(raw), true
	}
	return "", false
}

// isToken says whether s may be the name of a header (RFC 9110, 5.6.2).
func isToken(s string) bool {
	const letters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789!#$%&'*+-.^_`|~"
	return s != "" && strings.Trim(s, letters) == ""
}

// isFieldValue says whether s may be the value of a header.
func isFieldValue(s string) bool {
	return strings.IndexFunc(s, func(r rune) bool { return r < ' ' && r != '\t' || r == 0x7f }) < 0
}
