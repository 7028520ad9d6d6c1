package gateway

import (
	"net/http"
	"slices"
	"testing"
	"time"

	"go.opentelemetry.io/otel/trace"
	"pgregory.net/rapid"

	"github.com/windlass-dev/windlass/internal/callwire"
	"github.com/windlass-dev/windlass/internal/tracing"
	"github.com/windlass-dev/windlass/pkg/gateway/timeline"
	"github.com/windlass-dev/windlass/pkg/invocation"
)

var noon = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

func at(ms int) time.Time { return noon.Add(time.Duration(ms) * time.Millisecond) }

// recordOf is a call of default/hello with such times and attempts before the last one.
func recordOf(times timeline.Timeline, tries ...earlierAttempt) callRecord {
	return callRecord{
		Record: invocation.Record{
			Function: invocation.FunctionKey{Namespace: "default", Name: "hello"}, CID: "cid-2", Attempt: len(tries) + 1,
			Code: 200, Executed: invocation.ExecutedYes, Received: times.Received(), Ended: times.Received().Add(times.Total()),
		},
		uid: "uid", version: "00007", method: "GET", times: times, earlier: tries,
	}
}

func TestACallThatWasTriedAgainShowsEveryAttempt(t *testing.T) {
	times := timeline.Begin(at(0))
	times.Offered(at(1))
	times.Claimed(at(10))
	times.Requeued()
	times.Claimed(at(20))
	times.Requeued()
	times.Claimed(at(40))
	times.Headed(at(60), 2*time.Millisecond, 18*time.Millisecond, 0)
	times.Executed(at(60), 18*time.Millisecond)
	times.End(at(61))
	of := recordOf(times,
		earlierAttempt{number: 1, cid: "cid-0", from: at(10), until: at(15), ran: true, why: "it was lost"},
		earlierAttempt{number: 2, cid: "cid-1", from: at(20), until: at(25), why: "it gave it back"})
	type row struct {
		name     string
		from, to int
		err      string
	}
	want := []row{
		{"invoke default/hello", 0, 61, ""},
		{"admit", 0, 1, ""},
		{"queue", 1, 10, ""}, {"execute", 10, 15, "it was lost"},
		{"queue", 15, 20, ""}, {"claim", 20, 25, "it gave it back"},
		{"queue", 25, 40, ""}, {"claim", 40, 42, ""}, {"execute", 42, 60, ""},
		{"return", 60, 61, ""},
	}
	got := of.trace().Spans
	if len(got) != len(want) {
		t.Fatalf("%d spans, want %d: %v", len(got), len(want), got)
	}
	for i, w := range want {
		if g := got[i]; g.Name != w.name || !g.Start.Equal(at(w.from)) || !g.End.Equal(at(w.to)) || g.Error != w.err {
			t.Errorf("span %d is %s from %v to %v, %q; want %v", i, g.Name, g.Start.Sub(noon), g.End.Sub(noon), g.Error, w)
		}
	}
	if got[3].Number != 1 || got[8].Number != 3 {
		t.Errorf("the executions have the numbers %d and %d; the function was told 1 and 3", got[3].Number, got[8].Number)
	}
}

// Whatever happened, the spans below a call's are a partition of its time, and no two
// have the same number.
func TestSpansAreAPartitionOfTheCall(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		now := 0
		next := func() time.Time { now += rapid.IntRange(0, 20).Draw(t, "ms"); return at(now) }
		times := timeline.Begin(next())
		var tries []earlierAttempt
		if rapid.Bool().Draw(t, "offered") {
			times.Offered(next())
			for n := range rapid.IntRange(0, 4).Draw(t, "lost") {
				claimed := next()
				times.Claimed(claimed)
				times.Requeued()
				tries = append(tries, earlierAttempt{number: n + 1, from: claimed, until: next(), ran: rapid.Bool().Draw(t, "ran")})
			}
			if rapid.Bool().Draw(t, "claimed") {
				times.Claimed(next())
				if rapid.Bool().Draw(t, "answered") {
					exec := time.Duration(rapid.IntRange(0, 50).Draw(t, "exec")) * time.Millisecond
					times.Executed(next(), exec)
				}
			}
		}
		times.End(next())
		spans := recordOf(times, tries...).trace().Spans
		whole, end := spans[0], spans[0].Start
		seen := map[int]bool{}
		for i, s := range spans {
			if seen[s.Number] || s.Parent != 0 {
				t.Fatalf("span %d, %s, has the number %d and the parent %d", i, s.Name, s.Number, s.Parent)
			}
			seen[s.Number] = true
			if i == 0 {
				continue
			}
			if !s.Start.Equal(end) || s.End.Before(s.Start) {
				t.Fatalf("%s is from %v to %v, after %v", s.Name, s.Start.Sub(noon), s.End.Sub(noon), end.Sub(noon))
			}
			end = s.End
		}
		if !end.Equal(whole.End) {
			t.Fatalf("they end at %v, the call at %v", end.Sub(noon), whole.End.Sub(noon))
		}
	})
}

func TestWhatIsAFailure(t *testing.T) {
	for name, tt := range map[string]struct {
		code   int
		reason string
		broken bool
		want   string
	}{
		"an answer":                      {200, "", false, ""},
		"an answer that breaks off":      {200, "InstanceLost", true, "InstanceLost"},
		"a client's mistake":             {400, "BodyNotReadable", false, ""},
		"a function's own error":         {500, "", false, "the function answered with an error"},
		"an error of Windlass's":         {503, "NoInstanceInTime", false, "NoInstanceInTime"},
		"a client that left":             {codeLeft, "", false, "the client left"},
		"a function that refuses itself": {429, "", false, ""},
	} {
		of := callRecord{Record: invocation.Record{Code: tt.code, Reason: tt.reason, Broken: tt.broken}}
		if got := of.whole().Error; got != tt.want {
			t.Errorf("%s: %q, want %q", name, got, tt.want)
		}
	}
}

func TestAColdCallLeadsToTheStartOfItsInstance(t *testing.T) {
	of := recordOf(timeline.Begin(noon))
	if links := of.whole().Links; links != nil {
		t.Errorf("a warm call has the links %v", links)
	}
	of.Cold = true
	links := of.whole().Links
	if len(links) != 1 || !links[0].SpanContext.Equal(tracing.StartOf("uid", "cid-2").Context()) {
		t.Errorf("a cold call has the links %v", links)
	}
	if kind := of.whole().Kind; kind != trace.SpanKindServer {
		t.Errorf("it is a %v", kind)
	}
}

func TestWhatTheFunctionIsToldOfATrace(t *testing.T) {
	const parent = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
	sent := func(parent string) []callwire.Field {
		return []callwire.Field{
			{Name: "Accept", Value: "*/*"},
			{Name: tracing.HeaderParent, Value: parent}, {Name: tracing.HeaderState, Value: "vendor=1"},
		}
	}
	begin := func(ratio float64, parent string) tracing.Scope {
		config := tracing.DefaultConfig()
		config.Endpoint, config.SampleRatio, config.TrustClients = "http://127.0.0.1:1", ratio, true
		traces, err := tracing.New(config, tracing.Deps{})
		if err != nil {
			t.Fatal(err)
		}
		return traces.Begin(http.Header{tracing.HeaderParent: {parent}}, invocation.NewID(noon))
	}
	values := func(headers []callwire.Field, name string) (all []string) {
		for _, h := range headers {
			if h.Name == name {
				all = append(all, h.Value)
			}
		}
		return all
	}
	// 1. A call that is not recorded passes what its client sent.
	c := &call{}
	c.headers = c.inTrace(sent(parent))
	if got := c.headersOf(1); !slices.Equal(values(got, tracing.HeaderParent), []string{parent}) || len(got) != 3 {
		t.Errorf("not recorded: %v", got)
	}
	// 2. One that is recorded has its attempt as the parent, and keeps the state.
	c.scope = begin(0, parent)
	c.headers = c.inTrace(sent(parent))
	for attempt := range 3 {
		got := c.headersOf(attempt)
		if !slices.Equal(values(got, tracing.HeaderParent), []string{c.scope.Parent(attempt)}) || len(values(got, tracing.HeaderState)) != 1 {
			t.Errorf("attempt %d: %v", attempt, got)
		}
	}
	// 3. The state of a parent that is none is nobody's.
	c.scope = begin(1, "none")
	c.headers = c.inTrace(sent("none"))
	got := c.headersOf(1)
	if !slices.Equal(values(got, tracing.HeaderParent), []string{c.scope.Parent(1)}) || len(values(got, tracing.HeaderState)) != 0 {
		t.Errorf("without a parent: %v", got)
	}
}

// attributesOf are those of the first span of a name.
func attributesOf(spans []tracing.Span, name string) map[string]string {
	found := map[string]string{}
	for _, s := range spans {
		if s.Name == name {
			for _, a := range s.Attributes {
				found[string(a.Key)] = a.Value.String()
			}
			break
		}
	}
	return found
}

// The words are those of OpenTelemetry, and those that the function uses of itself.
func TestSpansNameTheFunctionAsItNamesItself(t *testing.T) {
	times := timeline.Begin(at(0))
	times.Offered(at(1))
	times.Claimed(at(10))
	times.Headed(at(60), 2*time.Millisecond, 18*time.Millisecond, 0)
	times.Executed(at(60), 18*time.Millisecond)
	times.End(at(61))
	spans := recordOf(times).trace().Spans
	for name, want := range map[string]map[string]string{
		"invoke default/hello": {
			"http.route": "/function/{function}/{path...}", "faas.name": "hello", "faas.version": "00007", "k8s.namespace.name": "default", "faas.instance": "cid-2",
		},
		"execute": {
			"faas.invoked_name": "hello", "faas.invoked_provider": "windlass", "k8s.namespace.name": "default", "faas.instance": "cid-2",
			"windlass.attempt": "1",
		},
	} {
		got := attributesOf(spans, name)
		for key, value := range want {
			if got[key] != value {
				t.Errorf("%s of %q is %q, want %q", key, name, got[key], value)
			}
		}
	}
}
