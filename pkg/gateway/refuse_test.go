package gateway_test

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	controlwire "github.com/windlass-dev/windlass/api/wire/control/v1alpha1"
	"github.com/windlass-dev/windlass/internal/callwire"
	"github.com/windlass-dev/windlass/pkg/gateway"
	"github.com/windlass-dev/windlass/pkg/invocation"
)

func TestRefusalsReachTheClient(t *testing.T) {
	w := newHarness(t)
	for _, tt := range []struct {
		name       string
		reason     controlwire.Refusal_Reason
		retryAfter time.Duration
		status     int
		says       string
		header     string
	}{
		{"the queue is full", controlwire.Refusal_REASON_QUEUE_FULL, 2500 * time.Millisecond, 429, "QueueFull", "3"},
		{"the rate is reached", controlwire.Refusal_REASON_RATE_LIMITED, time.Second, 429, "RateLimited", "1"},
		{"too many at a time", controlwire.Refusal_REASON_CONCURRENCY_LIMITED, 2 * time.Second, 429, "ConcurrencyLimited", "2"},
		{"the wait is too long", controlwire.Refusal_REASON_WAIT_TOO_LONG, 30 * time.Second, 429, "WaitTooLong", "30"},
		{"instances cannot start", controlwire.Refusal_REASON_CANNOT_START, 30 * time.Second, 503, "CannotStart", "30"},
		{"no node has room", controlwire.Refusal_REASON_NO_CAPACITY, 0, 503, "NoCapacity", "1"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			w := w.in(t)
			answers := w.call(w.get("/function/hello/"))
			ticket := w.scheduler.ticket()
			w.scheduler.refuse(&controlwire.Refusal{
				InvocationId: ticket.GetInvocationId(), Reason: tt.reason, Detail: "because", RetryAfterNs: int64(tt.retryAfter),
			})
			a := wrote(t, answers, tt.status, invocation.ExecutedNo)
			if p := problem(t, a, tt.says); p["detail"] != "because" || a.header.Get("Retry-After") != tt.header {
				t.Errorf("said %v, retry after %s", p, a.header.Get("Retry-After"))
			}
			if got := w.claim(ticket).refused; got != callwire.RefusedNotWaiting {
				t.Errorf("claim of a refused call: %v", got)
			}
		})
	}
}

func TestS4CallersReadNothingOfWhatIsInside(t *testing.T) {
	const secret = "postgres://admin:password@db on node-7"
	inside := func(c *gateway.Config) { c.ProblemDetail = gateway.DetailNone }
	for _, reason := range []controlwire.Refusal_Reason{controlwire.Refusal_REASON_CANNOT_START, controlwire.Refusal_REASON_NO_CAPACITY} {
		w := newHarness(t, inside)
		answers := w.call(w.get("/function/hello/"))
		w.scheduler.refuse(&controlwire.Refusal{InvocationId: w.scheduler.ticket().GetInvocationId(), Reason: reason, Detail: secret})
		a := wrote(t, answers, 503, invocation.ExecutedNo)
		if id := a.header.Get(invocation.HeaderInvocationID); strings.Contains(a.body, secret) || !strings.Contains(a.body, "windlass logs --invocation "+id) {
			t.Errorf("%s: %s", reason, a.body)
		}
	}
	for _, kind := range []callwire.FailureKind{callwire.FailureFunctionLost, callwire.FailureBadAnswer} {
		w := newHarness(t, inside)
		answers := w.call(w.get("/function/hello/"))
		w.take().fail(kind, secret)
		if a := wrote(t, answers, 502, invocation.ExecutedMaybe); strings.Contains(a.body, secret) {
			t.Errorf("%d: %s", kind, a.body)
		}
	}
	w := newHarness(t, inside)
	answers := w.call(w.get("/function/hello/"))
	w.take().sendHead(callwire.Head{
		Status: 500, Whole: true, FunctionError: "KeyError", ContentLength: -1,
		Body: []byte(`{"errorMessage":"no such key","errorType":"KeyError","stackTrace":["/task/app.py line 3"]}`),
	})
	a := wrote(t, answers, 500, invocation.ExecutedYes)
	if a.body != `{"errorMessage":"no such key","errorType":"KeyError"}` || a.header.Get(invocation.HeaderFunctionError) != "KeyError" {
		t.Errorf("answered %v %s", a.header, a.body)
	}
}

// A scheduler that lags behind does not refuse a call that an instance runs.
func TestARefusalComesTooLateForAClaimedCall(t *testing.T) {
	w := newHarness(t)
	first := w.call(w.get("/function/hello/"))
	ticket := w.scheduler.ticket()
	i := w.claim(ticket)
	second := w.call(w.get("/function/hello/"))
	// The refusals arrive in order: when the second is answered, the first
	// has been heard.
	for _, id := range [][]byte{ticket.GetInvocationId(), []byte("no id"), w.scheduler.ticket().GetInvocationId()} {
		w.scheduler.refuse(&controlwire.Refusal{InvocationId: id, Reason: controlwire.Refusal_REASON_QUEUE_FULL})
	}
	wrote(t, second, 429, invocation.ExecutedNo)
	i.whole(200, "")
	wrote(t, first, 200, invocation.ExecutedYes)
}

// A scheduler may hear of a function, or that it owns it, later than the gateway.
func TestACallWaitsForASchedulerThatDoesNotKnowTheFunction(t *testing.T) {
	w := newHarness(t)
	answers := w.call(w.get("/function/hello/"))
	for _, reason := range []controlwire.Refusal_Reason{controlwire.Refusal_REASON_UNKNOWN_FUNCTION, controlwire.Refusal_REASON_NOT_OWNER} {
		w.scheduler.refuse(&controlwire.Refusal{InvocationId: w.scheduler.offered().GetInvocationId(), Reason: reason})
	}
	w.take().whole(200, "")
	wrote(t, answers, 200, invocation.ExecutedYes)

	// Until the function is gone here too.
	answers = w.call(w.get("/function/hello/"))
	ticket := w.scheduler.ticket()
	w.catalog.Remove(invocation.FunctionKey{Namespace: "default", Name: "hello"})
	w.scheduler.refuse(&controlwire.Refusal{InvocationId: ticket.GetInvocationId(), Reason: controlwire.Refusal_REASON_UNKNOWN_FUNCTION})
	problem(t, wrote(t, answers, 404, invocation.ExecutedNo), "FunctionDeleted")
	if got := w.claim(ticket).refused; got != callwire.RefusedNotWaiting {
		t.Errorf("claim of a deleted function's call: %v", got)
	}
}

func TestADrainingGatewayTakesNoMoreCalls(t *testing.T) {
	w := newHarness(t)
	answers := w.call(w.get("/function/hello/"))
	i := w.take()
	if !w.gateway.Ready() {
		t.Error("not ready")
	}
	w.gateway.Drain()
	if w.gateway.Ready() {
		t.Error("ready after Drain")
	}
	a := wrote(t, w.call(w.get("/function/hello/")), 503, invocation.ExecutedNo)
	problem(t, a, "GatewayDraining")
	if a.header.Get("Retry-After") == "" {
		t.Error("no Retry-After")
	}
	i.whole(200, "")
	wrote(t, answers, 200, invocation.ExecutedYes)
}

func TestAFullGatewayTakesNoMoreCalls(t *testing.T) {
	w := newHarness(t, func(c *gateway.Config) { c.MaxInvocations = 2 })
	// One that is still sending a small body counts as well.
	slow := w.dial()
	slow.send("POST /function/hello/ HTTP/1.1\r\nHost: h\r\nContent-Length: 4\r\n\r\nha")
	waiting := w.call(w.get("/function/hello/"))
	first := w.scheduler.ticket()
	until(t, "both are here", func() bool {
		ctx, cancel := context.WithTimeout(t.Context(), patience)
		defer cancel()
		a := do(w.http1, w.get("/function/hello/").WithContext(ctx))
		return a.status == 503 && problem(t, a, "GatewayOverloaded") != nil && a.header.Get("Retry-After") == "1" &&
			a.header.Get(invocation.HeaderExecuted) == "no"
	})
	w.claim(first).whole(200, "")
	wrote(t, waiting, 200, invocation.ExecutedYes)
	slow.send("lf")
	w.take().whole(200, "")
	if a := slow.answer(); a.status != 200 {
		t.Errorf("answered %+v", a)
	}
	// All is free again.
	waiting = w.call(w.get("/function/hello/"))
	w.take().whole(200, "")
	wrote(t, waiting, 200, invocation.ExecutedYes)
}

// Attempts whose clients are gone still run, and so still count.
func TestUnheardAttemptsCountAsCalls(t *testing.T) {
	w := newHarness(t, func(c *gateway.Config) { c.MaxInvocations = 1 })
	ctx, cancel := context.WithCancel(t.Context())
	answers := w.call(w.get("/function/hello/").WithContext(ctx))
	i := w.take()
	cancel()
	receive(t, answers, "the end of the call")
	until(t, "the gateway has noticed", func() bool { return w.metric("windlass_gateway_invocations_total") == 1 })
	problem(t, wrote(t, w.call(w.get("/function/hello/")), 503, invocation.ExecutedNo), "GatewayOverloaded")
	i.whole(200, "")
	i.ended()
	until(t, "its place is free", func() bool { return w.gateway.Held() == 0 })
	answers = w.call(w.get("/function/hello/"))
	w.take().whole(200, "")
	wrote(t, answers, 200, invocation.ExecutedYes)
}

func TestARequestThatCannotBeHandedOverIsRefused(t *testing.T) {
	w := newHarness(t)
	for name, request := range map[string]string{
		"path or query": "GET /function/hello/?caf\xe9 HTTP/1.1\r\nHost: h\r\n\r\n",
		"host":          "GET http://caf\xe9/function/hello/ HTTP/1.1\r\nHost: h\r\n\r\n",
	} {
		c := w.dial()
		c.send(request)
		a := c.answer()
		if p := problem(t, a, "NotUTF8"); a.status != 400 || a.header.Get(invocation.HeaderExecuted) != "no" || !strings.Contains(fmt.Sprint(p["detail"]), name) {
			t.Errorf("%s: answered %+v", name, a)
		}
	}
}

// An instance that cannot write a request gives the call back, and leaves.
func TestAMethodThatIsNoTokenReachesNoInstance(t *testing.T) {
	w := newHarness(t, func(c *gateway.Config) { c.MaxQueueTime = 50 * time.Millisecond })
	for _, method := range []string{"A B", "", "GET\r\nX: y"} {
		rec := httptest.NewRecorder()
		r := w.get("/function/hello/")
		r.Method, r.RemoteAddr = method, "192.0.2.1:1"
		w.gateway.ServeHTTP(rec, r)
		if rec.Code != 400 || rec.Header().Get(invocation.HeaderExecuted) != "no" || !strings.Contains(rec.Body.String(), "Malformed") {
			t.Errorf("%q: answered %d, %v, %s", method, rec.Code, rec.Header(), rec.Body)
		}
	}
}

func TestPaths(t *testing.T) {
	w := newHarness(t)
	w.put("team", "hello", time.Minute)
	w.put("default", "team", time.Minute)
	for _, tt := range []struct {
		name, path string
		uid        string // of the function; empty if there is none
		uri        string
	}{
		{"a function alone", "/function/hello", "default-hello", "/"},
		{"with a slash", "/function/hello/", "default-hello", "/"},
		{"with a path", "/function/hello/a/b", "default-hello", "/a/b"},
		{"with a query", "/function/hello?a=1&a=2;b", "default-hello", "/?a=1&a=2;b"},
		{"with an empty query", "/function/hello/x?", "default-hello", "/x?"},
		{"with its namespace", "/function/hello.default/a", "default-hello", "/a"},
		{"of another namespace", "/function/hello.team/a/", "team-hello", "/a/"},
		{"a function named like a namespace", "/function/team/hello/a", "default-team", "/hello/a"},
		{"no function of that name in that namespace", "/function/other.team/a", "", ""},
		{"a dot in the path", "/function/hello/a.b", "default-hello", "/a.b"},
		{"escaped slashes", "/function/hello/a%2Fb%2fc", "default-hello", "/a%2Fb%2fc"},
		{"other escapes", "/function/hello/%20%C3%A9%3f?q=%2F", "default-hello", "/%20%C3%A9%3f?q=%2F"},
		{"an escaped dot beside what no path may have", "/function/hello%2Eteam/\"", "", ""},
		{"what no path may have", "/function/hello/a\"b|%2f%22", "default-hello", "/a%22b%7C%2f%22"},
		{"doubled slashes", "/function/hello//a//b", "default-hello", "//a//b"},
		{"dots", "/function/hello/./a/../../b", "default-hello", "/./a/../../b"},
		{"dots that leave the function", "/function/hello/../../team", "default-hello", "/../../team"},
		{"an escaped dot in place of one", "/function/hello%2Eteam", "", ""},
		{"an escaped slash in the name", "/function/team%2Fhello", "", ""},
		{"two dots", "/function/hello.team.svc/a", "", ""},
		{"a dot and no namespace", "/function/hello./a", "", ""},
		{"a doubled slash before the name", "/function//hello", "", ""},
		{"no name", "/function/", "", ""},
		{"no function of that name", "/function/nobody/x", "", ""},
		{"another path", "/functions/hello", "", ""},
		{"the root", "/", "", ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			w := w.in(t)
			c := w.dial()
			c.send("GET " + tt.path + " HTTP/1.1\r\nHost: h\r\n\r\n")
			if tt.uid == "" {
				if a := c.answer(); a.status != 404 || a.header.Get(invocation.HeaderExecuted) != "no" {
					t.Errorf("answered %+v", a)
				}
				return
			}
			ticket := w.scheduler.ticket()
			i := w.claim(ticket)
			i.whole(200, "")
			if uid := strings.TrimPrefix(ticket.GetFunctionUid(), "uid-of-"); uid != tt.uid || i.granted.RequestURI != tt.uri {
				t.Errorf("called %s with %s, want %s with %s", uid, i.granted.RequestURI, tt.uid, tt.uri)
			}
			if a := c.answer(); a.status != 200 {
				t.Errorf("answered %+v", a)
			}
		})
	}
}

func TestWhatTheFunctionSeesOfTheRequest(t *testing.T) {
	w := newHarness(t, func(c *gateway.Config) { c.TrustedProxies = gateway.Loopback() })
	r := w.request("PUT", "/function/hello/x", strings.NewReader("b"))
	r.Host = "shop.example"
	r.Header = http.Header{
		"Accept": {"a", "b"}, "User-Agent": {"me"}, "Authorization": {"Bearer x"},
		"Windlass-Invocation-Id": {"forged"}, "Windlass-Executed": {"no"}, "X-Windlass-Caller": {"forged"},
		"Connection": {"x-named"}, "X-Named": {"1"}, "Te": {"trailers"}, "Proxy-Authorization": {"x"}, "Keep-Alive": {"1"},
		"X-Forwarded-For": {"203.0.113.9"}, "X-Forwarded-Proto": {"https"},
	}
	answers := w.call(r)
	ticket := w.scheduler.ticket()
	i := w.claim(ticket)
	i.whole(200, "")
	wrote(t, answers, 200, invocation.ExecutedYes)
	got := make(http.Header)
	for _, h := range i.granted.Header {
		got.Add(h.Name, h.Value)
	}
	got.Del("Content-Length")
	want := http.Header{
		"Accept": {"a", "b"}, "User-Agent": {"me"}, "Authorization": {"Bearer x"},
		"Windlass-Invocation-Id": {fmt.Sprintf("%x", ticket.GetInvocationId())}, "Windlass-Depth": {"1"},
		"X-Forwarded-For": {"203.0.113.9, 127.0.0.1"}, "X-Forwarded-Proto": {"https"}, "X-Forwarded-Host": {"shop.example"},
	}
	if fmt.Sprint(got) != fmt.Sprint(want) || i.granted.Method != "PUT" || i.granted.Host != "shop.example" {
		t.Errorf("%s %s with %v,\nwant %v", i.granted.Method, i.granted.Host, got, want)
	}
	if !bytes.Equal(i.granted.Body, []byte("b")) {
		t.Errorf("body %q", i.granted.Body)
	}
}
