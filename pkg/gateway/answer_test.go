package gateway_test

import (
	"bufio"
	"context"
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/windlass-dev/windlass/internal/callwire"
	"github.com/windlass-dev/windlass/pkg/gateway/problems"
	"github.com/windlass-dev/windlass/pkg/invocation"
)

// problem checks that an answer is a problem with the given reason, and returns
// its members.
func problem(t *testing.T, a answer, reason string) map[string]any {
	t.Helper()
	var p map[string]any
	if err := json.Unmarshal([]byte(a.body), &p); err != nil || a.header.Get("Content-Type") != "application/problem+json" {
		t.Fatalf("not a problem: %q, %s", a.body, a.header.Get("Content-Type"))
	}
	kind, known := problems.Of(reason)
	if !known {
		t.Fatalf("%s is in no list", reason)
	}
	want := map[string]any{
		"type": kind.URI(), "title": kind.Title, "status": float64(a.status),
		"reason": reason, "executed": a.header.Get(invocation.HeaderExecuted),
	}
	for name, value := range want {
		if p[name] != value {
			t.Errorf("%s is %v, want %v", name, p[name], value)
		}
	}
	if id := a.header.Get(invocation.HeaderInvocationID); id != "" && p["instance"] != "/calls/"+id {
		t.Errorf("instance is %v, want %v", p["instance"], id)
	}
	if mayHaveRun := a.status == 502 || a.status == 504; mayHaveRun != (p["executed"] == "maybe") {
		t.Errorf("%d says another thing than executed: %v", a.status, p["executed"])
	}
	if again := a.status == 429 || a.status == 503; again != (a.header.Get("Retry-After") != "") {
		t.Errorf("%d with Retry-After %q", a.status, a.header.Get("Retry-After"))
	}
	if p["detail"] == "" {
		t.Error("no detail")
	}
	return p
}

func TestAnswersReachTheClientAsTheFunctionGaveThem(t *testing.T) {
	eachProtocol(t, func(w *harness, client *http.Client) {
		for _, tt := range []struct {
			name, method string
			status       int
			body         string
		}{
			{"a small answer", "GET", 200, "hello"},
			{"an empty answer", "GET", 200, ""},
			{"an answer larger than any buffer", "GET", 200, strings.Repeat("0123456789", 6000)},
			{"an error of the function", "POST", 500, "oops"},
			{"no content", "DELETE", 204, ""},
			{"not modified", "GET", 304, ""},
			{"the answer to HEAD", "HEAD", 200, ""},
			{"a method nobody knows", "FROB", 299, "frobbed"},
			{"the largest status", "GET", 599, "five"},
		} {
			w.Run(tt.name, func(t *testing.T) {
				w := w.in(t)
				answers := w.callWith(client, w.request(tt.method, "/function/hello/", nil))
				i := w.take()
				i.whole(tt.status, tt.body, "X-Mine", "a", "X-Mine", "b")
				a := wrote(t, answers, tt.status, invocation.ExecutedYes)
				if a.body != tt.body || !cmp.Equal(a.header["X-Mine"], []string{"a", "b"}) {
					t.Errorf("answered %q, %v", a.body, a.header)
				}
				i.ended()
			})
		}
	})
}

// An agent may send a body where HTTP has none.
func TestABodyWhereNoneBelongsIsDropped(t *testing.T) {
	eachProtocol(t, func(w *harness, client *http.Client) {
		for _, tt := range []struct {
			name, method string
			status       int
		}{{"HEAD", "HEAD", 200}, {"204", "GET", 204}, {"304", "GET", 304}} {
			w.Run(tt.name, func(t *testing.T) {
				w := w.in(t)
				answers := w.callWith(client, w.request(tt.method, "/function/hello/", nil))
				w.take().whole(tt.status, "body")
				if a := wrote(t, answers, tt.status, invocation.ExecutedYes); a.body != "" {
					t.Errorf("answered %q", a.body)
				}
				answers = w.callWith(client, w.request(tt.method, "/function/hello/", nil))
				i := w.take()
				i.head(tt.status)
				i.body("body")
				i.end()
				if a := wrote(t, answers, tt.status, invocation.ExecutedYes); a.body != "" {
					t.Errorf("answered %q in parts", a.body)
				}
			})
		}
	})
}

func TestAStreamedAnswerArrivesPartByPart(t *testing.T) {
	eachProtocol(t, func(w *harness, client *http.Client) {
		responses := make(chan *http.Response, 1)
		go func() {
			resp, err := client.Do(w.get("/function/hello/"))
			if err != nil {
				w.Error(err)
			}
			responses <- resp
		}()
		i := w.take()
		i.head(200)
		resp := receive(w.T, responses, "the head")
		defer resp.Body.Close()
		lines := bufio.NewReader(resp.Body)
		for _, line := range []string{"one\n", "two\n"} {
			i.body(line)
			if got, err := lines.ReadString('\n'); got != line || err != nil {
				w.Fatalf("read %q, %v", got, err)
			}
		}
		i.end()
		if rest, err := lines.ReadString('\n'); rest != "" || err.Error() != "EOF" {
			w.Errorf("read %q, %v at the end", rest, err)
		}
	})
}

func TestWhatTheGatewaySaysOfAnAnswerIsItsOwn(t *testing.T) {
	w := newHarness(t)
	answers := w.call(w.get("/function/hello/"))
	w.take().sendHead(callwire.Head{
		Status: 200, Whole: true, Body: []byte("x"), ContentLength: -1, Exec: 1_500 * time.Microsecond, Cold: true, FunctionError: "Unhandled",
		Header: fields([]string{
			"Windlass-Executed", "no", "server-timing", "db;dur=1", "Windlass-Other", "1", "x-windlass-executed", "no",
			"Connection", "close, x-named", "X-Named", "1", "Keep-Alive", "1", "Proxy-Authenticate", "x",
			"Trailer", "X", "Transfer-Encoding", "gzip", "Upgrade", "x", "Content-Length", "1000",
			"Etag", `"e"`, "Set-Cookie", "a=1", "Set-Cookie", "b=2",
		}),
	})
	a := wrote(t, answers, 200, invocation.ExecutedYes)
	a.header.Del("Date")
	timing, known := invocation.ParseTiming(a.header["Server-Timing"])
	if !known || timing.Queue <= 0 || timing.Queue > time.Minute || !timing.Cold || timing.Function != 1500*time.Microsecond ||
		len(a.header["Server-Timing"]) != 2 || a.header.Get("Server-Timing") != "db;dur=1" {
		t.Errorf("%+v from %q", timing, a.header["Server-Timing"])
	}
	a.header.Del(invocation.HeaderTiming)
	want := http.Header{
		"Content-Length": {"1"}, "Etag": {`"e"`}, "Set-Cookie": {"a=1; Path=/function/hello", "b=2; Path=/function/hello"},
		"Windlass-Executed":       {"yes"},
		"Windlass-Function-Error": {"Unhandled"}, "Windlass-Invocation-Id": a.header["Windlass-Invocation-Id"],
	}
	if diff := cmp.Diff(want, a.header); diff != "" || len(a.header.Get(invocation.HeaderInvocationID)) != 32 {
		t.Error(diff)
	}
}

// An answer whose function says no type has none: the gateway does not guess one from the body,
// which would make a page of text that a client has sent.
func TestTheTypeOfAnAnswerIsTheFunctions(t *testing.T) {
	eachProtocol(t, func(w *harness, client *http.Client) {
		const page = "<html><script>alert(1)</script></html>"
		for name, answer := range map[string]func(i *instance){
			"whole":                     func(i *instance) { i.whole(200, page, "X-Content-Type-Options", "nosniff") },
			"streamed":                  func(i *instance) { i.head(200); i.body(page); i.end() },
			"a refusal of the function": func(i *instance) { i.whole(404, page) },
		} {
			answers := w.callWith(client, w.get("/function/hello/"))
			i := w.take()
			answer(i)
			a := receive(t, answers, "the answer of "+name)
			if got := a.header["Content-Type"]; got != nil || a.body != page {
				t.Errorf("%s: the type %q of %q", name, got, a.body)
			}
		}
		answers := w.callWith(client, w.get("/function/hello/"))
		w.take().whole(200, page, "Content-Type", "text/html")
		if got := receive(t, answers, "the answer").header["Content-Type"]; !slices.Equal(got, []string{"text/html"}) {
			t.Errorf("the function says text/html, and the client got %q", got)
		}
	})
}

func TestFailuresSayWhetherTheFunctionRan(t *testing.T) {
	for _, tt := range []struct {
		name   string
		end    func(i *instance)
		status int
		reason string
		detail string
	}{
		{"the function was lost", func(i *instance) { i.fail(callwire.FailureFunctionLost, "exit 1") }, 502, "FunctionLost", "exit 1"},
		{"its answer was none", func(i *instance) { i.fail(callwire.FailureBadAnswer, "no status") }, 502, "BadAnswer", "no status"},
		{"it took too long", func(i *instance) { i.fail(callwire.FailureTimedOut, "") }, 504, "TimedOut", "timeout of 1m"},
		{"a failure of a later version", func(i *instance) { i.fail(99, "new") }, 502, "FunctionLost", "new"},
		{"the instance was lost", func(i *instance) { i.die() }, 502, "InstanceLost", "lost during the call"},
		{"the instance hung up", func(i *instance) { i.hangUp() }, 502, "InstanceLost", "lost during the call"},
		{"a status below all", func(i *instance) { i.whole(101, "") }, 502, "BadAnswer", "101"},
		{"an interim status of a whole answer", func(i *instance) { i.whole(103, "") }, 502, "BadAnswer", "103"},
		{"a status above all", func(i *instance) { i.whole(600, "") }, 502, "BadAnswer", "600"},
		{"a status that is none", func(i *instance) { i.head(99) }, 502, "BadAnswer", "99"},
		{"a head of 1 MiB", func(i *instance) { i.whole(200, "x", "X", strings.Repeat("x", 1<<20)) }, 502, "BadAnswer", "65536"},
		{"a head of many headers", func(i *instance) { i.head(200, slices.Repeat([]string{"X", "x"}, 10_000)...) }, 502, "BadAnswer", "65536"},
		{"an end without a head", func(i *instance) { i.end() }, 502, "InstanceLost", "no sense"},
		{"a body without a head", func(i *instance) { i.body("x") }, 502, "InstanceLost", "no sense"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			w := newHarness(t)
			answers := w.call(w.get("/function/hello/"))
			ticket := w.scheduler.ticket()
			i := w.claim(ticket)
			tt.end(i)
			a := wrote(t, answers, tt.status, invocation.ExecutedMaybe)
			p := problem(t, a, tt.reason)
			if !strings.Contains(p["detail"].(string), tt.detail) || p["attempt"] != 1.0 || p["function"] != "default/hello" {
				t.Errorf("said %v", p)
			}
			if got := w.claim(ticket).refused; got != callwire.RefusedNotWaiting {
				t.Errorf("it could be claimed again: %v", got)
			}
		})
	}
}

// Once the head was sent, the client must be able to tell that the rest is
// missing.
func TestABrokenAnswerNeverLooksWhole(t *testing.T) {
	breaks := map[string]func(i *instance){
		"the instance was lost": func(i *instance) { i.die() },
		"the instance hung up":  func(i *instance) { i.hangUp() },
		"the function failed":   func(i *instance) { i.fail(callwire.FailureFunctionLost, "") },
		"a second head":         func(i *instance) { i.whole(200, "other") },
		"a release":             func(i *instance) { i.release("") },
	}
	for name, end := range breaks {
		t.Run(name, func(t *testing.T) {
			eachProtocol(t, func(w *harness, client *http.Client) {
				answers := w.callWith(client, w.get("/function/hello/"))
				i := w.take()
				i.head(200)
				i.body("half")
				end(i)
				if a := receive(w.T, answers, "the answer"); a.err == nil {
					w.Errorf("the client read %q and a clean end", a.body)
				}
			})
		})
	}
}

func TestAFunctionThatRunsTooLongIsToldToStop(t *testing.T) {
	t.Parallel()
	w := newHarness(t)
	w.put("default", "slow", 10*time.Millisecond)
	answers := w.call(w.get("/function/slow/"))
	ticket := w.scheduler.ticket()
	i := w.claim(ticket)
	if got := i.granted.Remaining; got != 10*time.Millisecond {
		t.Errorf("granted %v", got)
	}
	i.cancelled()
	problem(t, wrote(t, answers, 504, invocation.ExecutedMaybe), "TimedOut")
	// Too late for anything: not even a release has an effect.
	i.release("")
	i.ended()
	if got := w.claim(ticket).refused; got != callwire.RefusedNotWaiting {
		t.Errorf("it waits again: %v", got)
	}
}

func TestACallWhoseClientIsGoneRunsToItsEnd(t *testing.T) {
	eachProtocol(t, func(w *harness, client *http.Client) {
		ctx, cancel := context.WithCancel(w.Context())
		answers := w.callWith(client, w.get("/function/hello/").WithContext(ctx))
		i := w.take()
		cancel()
		receive(w.T, answers, "the end of the call")
		until(w.T, "the gateway has noticed", func() bool { return w.metric("windlass_gateway_invocations_total") == 1 })
		i.head(200)
		i.body("unheard")
		i.end()
		if u := i.ended(); u.cancelled {
			w.Error("it was told to stop")
		}
	})
}

// A client that does not read holds an instance, but no longer than the function
// may run.
func TestAClientThatDoesNotReadDoesNotHoldTheInstance(t *testing.T) {
	t.Parallel()
	eachProtocol(t, func(w *harness, client *http.Client) {
		w.put("default", "slow", 10*time.Millisecond)
		go func() {
			// Not by the client, which would not wait for ever.
			resp, err := client.Transport.RoundTrip(w.get("/function/slow/"))
			if err != nil {
				w.Error(err)
				return
			}
			<-w.Context().Done()
			resp.Body.Close()
		}()
		i := w.take()
		i.head(200)
		part := strings.Repeat("x", 32<<10)
		sent := make(chan struct{})
		go func() {
			defer close(sent)
			for {
				if _, err := i.out.Write([]byte(part)); err != nil {
					return
				}
			}
		}()
		i.cancelled()
		i.die()
		receive(w.T, sent, "the end of the stream")
		until(w.T, "the call is over", func() bool { return w.metric("windlass_gateway_invocations_in_flight") == 0 })
	})
}
