package lambda

import (
	"encoding/base64"
	"strings"
	"testing"
	"time"

	"github.com/windlass-dev/windlass/pkg/invocation"
	"github.com/windlass-dev/windlass/pkg/podagent/adapter"
)

func TestEmptyBodyIsAnEmptyObject(t *testing.T) {
	event, err := readEvent(t.Context(), newBodyBudget(9, 9), &adapter.Call{Body: strings.NewReader(""), ContentLength: 0})
	if err != nil || string(event.bytes()) != "{}" {
		t.Errorf("got %q, %v", event.bytes(), err)
	}
}

func TestTraceComesFromTheClient(t *testing.T) {
	const parent = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-"
	const root = "Root=1-4bf92f35-77b34da6a3ce929d0e0e4736;Parent=00f067aa0ba902b7;"
	for name, tc := range map[string]struct{ header, value, want string }{
		"its own":               {"X-Amzn-Trace-Id", "Root=1-2-3", "Root=1-2-3"},
		"traceparent":           {"Traceparent", parent + "01", root + "Sampled=1"},
		"with more flags":       {"Traceparent", parent + "03", root + "Sampled=1"},
		"not sampled":           {"Traceparent", parent + "02", root + "Sampled=0"},
		"of a version to come":  {"Traceparent", "01" + parent[2:] + "01-more", root + "Sampled=1"},
		"that is not valid":     {"Traceparent", "00-xyz-1-01", ""},
		"that has a long flags": {"Traceparent", parent + "011", ""},
		"as long as may be":     {"X-Amzn-Trace-Id", strings.Repeat("x", 1024), strings.Repeat("x", 1024)},
		"too long":              {"X-Amzn-Trace-Id", strings.Repeat("x", 1025), ""},
		"no header":             {"X-Amzn-Trace-Id", "Root=\x7f", ""},
		"none":                  {"X-Other", "1", ""},
	} {
		t.Run(name, func(t *testing.T) {
			call := &adapter.Call{Header: invocation.Fields{{Name: tc.header, Value: tc.value}}, Deadline: time.Now()}
			h := eventHeader(call, "arn", 1)
			if got := h.Get("Lambda-Runtime-Trace-Id"); got != tc.want {
				t.Errorf("got %q, want %q", got, tc.want)
			}
			if _, there := h["Lambda-Runtime-Trace-Id"]; there != (tc.want != "") {
				t.Errorf("there: %t", there)
			}
		})
	}
}

func TestClientContextIsDecodedOrLeftOut(t *testing.T) {
	longest := `{"a":"` + strings.Repeat("x", 2677) + `"}` // 3580 bytes in base64
	for encoded, want := range map[string]string{
		base64.StdEncoding.EncodeToString([]byte(longest)):            longest,
		base64.StdEncoding.EncodeToString([]byte(longest + " ")):      "",
		base64.StdEncoding.EncodeToString([]byte("{\"a\":\"\x7f\"}")): "",
		base64.StdEncoding.EncodeToString([]byte("{\"a\":\n 1}")):     `{"a":1}`,
		base64.StdEncoding.EncodeToString([]byte("no json")):          "",
		"no base64": "",
		"":          "",
	} {
		call := &adapter.Call{Header: invocation.Fields{{Name: "X-Amz-Client-Context", Value: encoded}}, Deadline: time.Now()}
		values, there := eventHeader(call, "arn", 1)["Lambda-Runtime-Client-Context"]
		if there != (want != "") || (there && values[0] != want) {
			t.Errorf("%q became %q, want %q", encoded, values, want)
		}
	}
}

func TestMediaTypesThatSayNothing(t *testing.T) {
	for sent, want := range map[string]string{
		"":                                  "application/json",
		"application/x-www-form-urlencoded": "application/json",
		"application/unknown":               "application/octet-stream",
		"text/html; charset=utf-8":          "text/html; charset=utf-8",
		"application/json":                  "application/json",
	} {
		if got := mediaType(sent); got != want {
			t.Errorf("%q became %q, want %q", sent, got, want)
		}
	}
}
