package lambda

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"regexp"
	"strconv"

	"github.com/windlass-dev/windlass/pkg/invocation"
	"github.com/windlass-dev/windlass/pkg/podagent/adapter"
)

const (
	// maxEvent bounds a call's body in bytes, as AWS does.
	maxEvent = 6 << 20
	// maxContext bounds a call's client context in bytes as it came, as AWS does, and maxTrace its
	// trace id. Callers choose both, and Node.js refuses an answer with over 16 KiB of headers.
	maxContext = 3583
	maxTrace   = 1 << 10
)

// readEvent reads the event that is a call's body.
func readEvent(ctx context.Context, events *bodyBudget, call *adapter.Call) (*bufferedBody, error) {
	event, err := events.read(ctx, call.Body, call.ContentLength)
	if err != nil {
		return nil, fmt.Errorf("reading the call's body: %w", err)
	}
	if len(event.body) == 0 {
		event.body = []byte("{}")
	}
	return event, nil
}

// eventHeader is the header with which call's event of size bytes is handed
// out. A header that has no value is left out: clients parse those that are
// there.
func eventHeader(call *adapter.Call, arn string, size int) http.Header {
	h := http.Header{
		// Not the client's type: with any other than this one the
		// runtime clients do not parse the event.
		"Content-Type":                        {"application/json"},
		"Content-Length":                      {strconv.Itoa(size)},
		"Lambda-Runtime-Aws-Request-Id":       {call.ID},
		"Lambda-Runtime-Deadline-Ms":          {strconv.FormatInt(call.Deadline.UnixMilli(), 10)},
		"Lambda-Runtime-Invoked-Function-Arn": {arn},
	}
	if trace := traceID(call.Header); trace != "" {
		h.Set("Lambda-Runtime-Trace-Id", trace)
	}
	if context := clientContext(call.Header.Get("X-Amz-Client-Context")); context != "" {
		h.Set("Lambda-Runtime-Client-Context", context)
	}
	return h
}

var traceparent = regexp.MustCompile(`^[0-9a-f]{2}-([0-9a-f]{8})([0-9a-f]{24})-([0-9a-f]{16})-[0-9a-f]([0-9a-f])(-|$)`)

// traceID is the X-Ray trace id of a call: the client's own, or its W3C
// traceparent in that form.
func traceID(h invocation.Fields) string {
	if own := h.Get("X-Amzn-Trace-Id"); own != "" && len(own) <= maxTrace && isFieldValue(own) {
		return own
	}
	m := traceparent.FindStringSubmatch(h.Get("Traceparent"))
	if m == nil {
		return ""
	}
	flags, _ := strconv.ParseUint(m[4], 16, 8)
	return fmt.Sprintf("Root=1-%s-%s;Parent=%s;Sampled=%d", m[1], m[2], m[3], flags&1)
}

// clientContext is the JSON that encoded holds, on one line, or nothing.
func clientContext(encoded string) string {
	if len(encoded) > maxContext {
		return ""
	}
	decoded, err := base64.StdEncoding.DecodeString(encoded)
	if err != nil {
		return ""
	}
	var line bytes.Buffer
	if json.Compact(&line, decoded) != nil {
		return ""
	}
	// JSON may hold a byte 0x7f, and a header may not.
	if !isFieldValue(line.String()) {
		return ""
	}
	return line.String()
}
