package lambda

import (
	"bytes"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/windlass-dev/windlass/pkg/invocation"
	"github.com/windlass-dev/windlass/pkg/podagent/adapter"
)

// FuzzAnswer passes on anything that a runtime client may send as an answer, or as
// the end of one.
func FuzzAnswer(f *testing.F) {
	f.Add(httpResponse, "", "", []byte(`{"statusCode":201,"headers":{"a":"b","n":1},"cookies":["c=d"]}`+strings.Repeat("\x00", 8)+"body"))
	f.Add(httpResponse+"; x=y", "Function.Error", "eyJhIjoxfQ==", []byte(`{"headers":{"A\r\nB":"c"}}`+strings.Repeat("\x00", 8)))
	f.Add("application/json", "\x1b", "!", []byte(`{}`))
	f.Add("", "", "", []byte(nil))
	f.Fuzz(func(t *testing.T, contentType, errorKind, errorText string, body []byte) {
		w := &recorder{}
		a := &answer{contentType: contentType, body: &bufferedBody{body: body}}
		err := a.relay(t.Context(), &adapter.Call{Deadline: time.Now().Add(time.Hour)}, w)
		if err == nil && (w.head.Status < 200 || w.head.Status > 599) {
			t.Errorf("answered with %+v", w.head)
		}
		for _, h := range w.head.Header {
			if h.Name == "Content-Type" {
				continue // as the runtime client's HTTP server let it through
			}
			if !isToken(h.Name) || strings.ContainsAny(h.Value, "\r\n\x00") || aboutConnection[h.Name] {
				t.Errorf("answered with %q: %q", h.Name, h.Value)
			}
		}
		_ = trailerError(http.Header{headErrorType: {errorKind}, headErrorBody: {errorText}})
		if err := initFailure(errorType(errorKind), body); err == nil {
			t.Error("a failure is none")
		}
	})
}

// FuzzEvent makes an event of anything that a client may send.
func FuzzEvent(f *testing.F) {
	f.Add("Root=1-5759e988-bd862e3fe1be46a994272793", "", "", []byte(`{"a":1}`), int64(7))
	f.Add("", "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01", "eyJhIjogMX0=", []byte("x"), int64(-1))
	f.Add("", "00-", "e30", []byte(nil), int64(0))
	f.Fuzz(func(t *testing.T, trace, parent, context string, body []byte, length int64) {
		call := &adapter.Call{
			ID: "i", ContentLength: length, Body: bytes.NewReader(body), Deadline: time.Now(),
			Header: invocation.Fields{
				{Name: "X-Amzn-Trace-Id", Value: trace}, {Name: "Traceparent", Value: parent}, {Name: "X-Amz-Client-Context", Value: context},
			},
		}
		event, err := readEvent(t.Context(), newBodyBudget(maxEvent, maxEvent), call)
		if err == nil && length > 0 && len(event.body) != int(length) {
			t.Errorf("%d bytes of %d", len(event.body), length)
		}
		h := eventHeader(call, "arn", len(event.bytes()))
		if sent := h.Get("Lambda-Runtime-Client-Context"); strings.ContainsAny(sent, "\r\n") {
			t.Errorf("the client's context is %q", sent)
		}
		if trace == "" && strings.ContainsAny(h.Get("Lambda-Runtime-Trace-Id"), "\r\n\x00") {
			t.Errorf("the trace is %q", h)
		}
	})
}
