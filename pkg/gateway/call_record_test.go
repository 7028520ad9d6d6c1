package gateway_test

import (
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync"
	"testing"

	"github.com/windlass-dev/windlass/internal/callwire"
	"github.com/windlass-dev/windlass/pkg/gateway"
	"github.com/windlass-dev/windlass/pkg/invocation"
)

// fakeCallLog is a log and a journal of calls.
type fakeCallLog struct {
	mu    sync.Mutex
	lines []map[string]any
	noted []invocation.Record
}

// Write takes a line of log.
func (a *fakeCallLog) Write(line []byte) (int, error) {
	var fields map[string]any
	if err := json.Unmarshal(line, &fields); err != nil {
		return 0, err
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if fields["msg"] == "call ended" {
		a.lines = append(a.lines, fields)
	}
	return len(line), nil
}

func (a *fakeCallLog) Add(record invocation.Record) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.noted = append(a.noted, record)
}

// counted is how many lines there are of how many calls.
func (a *fakeCallLog) counted() (lines, calls int) {
	a.mu.Lock()
	defer a.mu.Unlock()
	return len(a.lines), len(a.noted)
}

// newRecordingHarness is newHarness with somebody who listens.
func newRecordingHarness(t *testing.T, logCalls gateway.LogCalls) (*harness, *fakeCallLog) {
	a := &fakeCallLog{}
	w := newHarnessWith(t, func(config *gateway.Config, deps *gateway.Deps) {
		config.LogCalls = logCalls
		deps.Log, deps.CallLog = slog.New(slog.NewJSONHandler(a, nil)), a
	})
	return w, a
}

func TestOfWhichCallsALineIsLogged(t *testing.T) {
	for logCalls, want := range map[gateway.LogCalls]int{gateway.LogAll: 4, gateway.LogFailed: 1, gateway.LogNone: 0} {
		t.Run(string(logCalls), func(t *testing.T) {
			w, a := newRecordingHarness(t, logCalls)
			for i, end := range []func(*instance){
				func(i *instance) { i.whole(200, "") },
				func(i *instance) { i.whole(500, "") }, // the function's own
				func(i *instance) { i.whole(404, "") },
				func(i *instance) { i.die() },
			} {
				answers := w.call(w.get("/function/hello/"))
				end(w.take())
				receive(t, answers, "the answer")
				until(t, "the call is noted", func() bool { _, calls := a.counted(); return calls == i+1 })
			}
			if lines, _ := a.counted(); lines != want {
				t.Errorf("%d lines, want %d: %v", lines, want, a.lines)
			}
		})
	}
}

func TestALineTellsTheWholeCall(t *testing.T) {
	w, a := newRecordingHarness(t, gateway.LogAll)
	w.route(part{"", 3, 100})
	request := w.get("/function/hello/")
	request.Header.Set("Traceparent", "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-00")
	answers := w.call(request)
	w.take().whole(201, "")
	got := wrote(t, answers, 201, invocation.ExecutedYes)
	until(t, "the call is noted", func() bool { _, calls := a.counted(); return calls == 1 })
	line, noted := a.lines[0], a.noted[0]
	for key, want := range map[string]any{
		"level": "INFO", "function": "default/hello", "revision": "hello-00003", "invocation": got.header.Get(invocation.HeaderInvocationID),
		"trace": "4bf92f3577b34da6a3ce929d0e0e4736", "cid": "00000001-000001", "code": 201.0, "executed": "yes", "attempt": 1.0, "cold": false,
	} {
		if line[key] != want {
			t.Errorf("%s is %v, want %v", key, line[key], want)
		}
	}
	for _, phase := range []string{"admit", "queue", "claim", "execute", "return"} {
		if _, is := line[phase+"_ms"].(float64); !is {
			t.Errorf("the line does not tell %s", phase)
		}
		if !slices.ContainsFunc(noted.Phases, func(s invocation.PhaseTime) bool { return s.Phase == phase }) {
			t.Errorf("the record does not tell %s", phase)
		}
	}
	if noted.ID.String() != line["invocation"] || noted.Claimed.IsZero() || noted.Ended.Before(noted.Claimed) {
		t.Errorf("noted %+v", noted)
	}
}

// The client of an answer that breaks off has the status of its head, which may be a good one.
func TestAnAnswerThatBreaksOffIsAFailure(t *testing.T) {
	const broken = "windlass_gateway_answers_broken_total"
	for reason, breakOff := range map[string]func(*instance){
		"InstanceLost": func(i *instance) { i.head(200); i.die() },
		"FunctionLost": func(i *instance) { i.head(200); i.fail(callwire.FailureFunctionLost, "exit status 1") },
		"TimedOut":     func(i *instance) { i.head(200); i.fail(callwire.FailureTimedOut, "") },
		"BadAnswer":    func(i *instance) { i.promise(200, 10); i.body("half"); i.end() },
	} {
		t.Run(reason, func(t *testing.T) {
			w, a := newRecordingHarness(t, gateway.LogFailed)
			answers := w.call(w.get("/function/hello/"))
			breakOff(w.take())
			if got := receive(t, answers, "the answer"); got.err == nil {
				t.Errorf("the client read a whole answer: %+v", got)
			}
			until(t, "the call is noted", func() bool { _, calls := a.counted(); return calls == 1 })
			if line := a.lines[0]; line["level"] != "WARN" || line["reason"] != reason || line["broken"] != true || line["code"] != 200.0 {
				t.Errorf("the line is %v", line)
			}
			if noted := a.noted[0]; noted.Reason != reason || !noted.Broken {
				t.Errorf("noted %+v", noted)
			}
			if got := w.metric(broken, "function_namespace", "default", "function", "hello", "reason", reason); got != 1 {
				t.Errorf("%v answers broke off", got)
			}
			w.catalog.Remove(invocation.FunctionKey{Namespace: "default", Name: "hello"})
			until(t, "the series is gone", func() bool { return w.metric(broken) == -1 })
		})
	}
}

func TestAnAnswerThatTheClientLeavesIsNotBroken(t *testing.T) {
	w, a := newRecordingHarness(t, gateway.LogFailed)
	ctx, cancel := context.WithCancel(t.Context())
	answers := w.call(w.get("/function/hello/").WithContext(ctx))
	i := w.take()
	i.head(200)
	cancel()
	receive(t, answers, "the end of the call")
	until(t, "the call is noted", func() bool { _, calls := a.counted(); return calls == 1 })
	if a.noted[0].Broken || w.metric("windlass_gateway_answers_broken_total") != -1 {
		t.Errorf("noted %+v", a.noted[0])
	}
}

// leftWriter is the connection of a client that leaves once the head of its answer has come.
type leftWriter struct{ http.ResponseWriter }

func (leftWriter) Write([]byte) (int, error) { return 0, io.ErrClosedPipe }

func TestAWholeAnswerThatTheClientLeavesIsRecordedAsOneInParts(t *testing.T) {
	w, a := newRecordingHarness(t, gateway.LogFailed)
	aborted := make(chan any, 1)
	go func() {
		defer func() { aborted <- recover() }()
		w.gateway.ServeHTTP(leftWriter{httptest.NewRecorder()}, httptest.NewRequest(http.MethodGet, "/function/hello/", nil))
	}()
	w.take().whole(200, "hello")
	if end := receive(t, aborted, "the end of the call"); end != http.ErrAbortHandler {
		t.Errorf("the handler ended with %v", end)
	}
	if lines, calls := a.counted(); lines != 1 || calls != 1 || a.lines[0]["level"] != "WARN" {
		t.Errorf("%d lines of %d calls: %v", lines, calls, a.lines)
	}
}

func TestALineTellsWhyWindlassFailedACall(t *testing.T) {
	w, a := newRecordingHarness(t, gateway.LogFailed)
	answers := w.call(w.get("/function/hello/"))
	w.take().die()
	wrote(t, answers, 502, invocation.ExecutedMaybe)
	until(t, "the call is noted", func() bool { _, calls := a.counted(); return calls == 1 })
	if line := a.lines[0]; line["level"] != "WARN" || line["reason"] != "InstanceLost" || line["code"] != 502.0 {
		t.Errorf("the line is %v", line)
	}
}
