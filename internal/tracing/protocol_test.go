package tracing

import (
	"context"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"testing"

	collectorv1 "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	"google.golang.org/protobuf/proto"

	"github.com/windlass-dev/windlass/internal/tracetest"
)

// sendOne records a trace of two spans, and returns when it was sent.
func sendOne(t *testing.T, endpoint, protocol string) Scope {
	t.Helper()
	tracer, err := New(Config{Endpoint: endpoint, Protocol: protocol, SampleRatio: 1},
		Deps{Service: "windlass-test", Instance: "one", Log: slog.New(slog.NewTextHandler(t.Output(), nil))})
	if err != nil {
		t.Fatal(err)
	}
	s := tracer.Begin(http.Header{}, newID())
	tracer.Record(chain(s, 2))
	// What waits at the end is sent.
	ended, cancel := context.WithCancel(context.Background())
	cancel()
	if err := tracer.Run(ended); err != nil {
		t.Fatal(err)
	}
	if tracer.count(exported) != 2 {
		t.Fatalf("%d spans were exported", tracer.count(exported))
	}
	return s
}

func TestCollectorsOfGRPC(t *testing.T) {
	c, err := tracetest.Start()
	if err != nil {
		t.Fatal(err)
	}
	defer c.Stop()
	s := sendOne(t, c.URL(), ProtocolGRPC)
	spans := c.Trace(s.TraceID())
	if len(spans) != 2 || spans[0].Service != "windlass-test" || spans[0].ID != s.Span(0).String() || spans[1].Parent != spans[0].ID {
		t.Errorf("it took %+v", spans)
	}
}

func TestCollectorsOfHTTP(t *testing.T) {
	var path string
	var got collectorv1.ExportTraceServiceRequest
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		path = r.URL.Path
		body, _ := io.ReadAll(r.Body)
		if err := proto.Unmarshal(body, &got); err != nil {
			t.Error(err)
		}
		w.Header().Set("Content-Type", "application/x-protobuf")
	}))
	defer server.Close()
	sendOne(t, server.URL, ProtocolHTTP)
	if path != "/v1/traces" || len(got.GetResourceSpans()) != 1 || len(got.GetResourceSpans()[0].GetScopeSpans()[0].GetSpans()) != 2 {
		t.Errorf("%s took %v", path, &got)
	}
}
