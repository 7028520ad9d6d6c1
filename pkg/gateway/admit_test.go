package gateway_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"sort"
	"strings"
	"testing"
	"time"

	"github.com/windlass-dev/windlass/pkg/gateway"
	"github.com/windlass-dev/windlass/pkg/gateway/admission"
	"github.com/windlass-dev/windlass/pkg/gateway/auth"
	"github.com/windlass-dev/windlass/pkg/invocation"
)

// guard lets those call what their key names, but for the namespace open, and
// limits every namespace alike.
type guard struct {
	limits  admission.Limits
	permits func(namespace, host string) bool
}

func (guard) Authenticate(h http.Header, key invocation.FunctionKey) (auth.Caller, error) {
	shown, spent := h.Get(invocation.HeaderKey), invocation.HeaderKey
	if shown == "" {
		shown, spent = h.Get("Authorization"), "Authorization"
	}
	switch {
	case key.Namespace == "open":
		return auth.Caller{}, nil
	case shown == "":
		return auth.Caller{}, auth.ErrMissing
	case shown == "later":
		return auth.Caller{}, auth.ErrUnavailable
	case !strings.HasPrefix(shown, "for-"):
		return auth.Caller{}, auth.ErrInvalid
	case shown != "for-"+key.Namespace && shown != "for-all":
		return auth.Caller{}, auth.ErrNotAllowed
	}
	return auth.Caller{Name: "key:" + shown, Spent: spent}, nil
}

func (g guard) Limits(string) admission.Limits { return g.limits }

func (g guard) Permits(namespace, host string) bool {
	return g.permits != nil && g.permits(namespace, host)
}

// as makes a request of somebody who shows something.
func (w *harness) as(shown, path string) *http.Request {
	r := w.get(path)
	if shown != "" {
		r.Header.Set(invocation.HeaderKey, shown)
	}
	return r
}

// Who may not call a function cannot tell whether it exists.
func TestWhoMayCall(t *testing.T) {
	w := newGuardedHarness(t, guard{})
	w.put("team", "hello", time.Minute)
	w.put("open", "hello", time.Minute)
	for _, tt := range []struct {
		shown, path string
		status      int
		reason      string
	}{
		{"", "/function/hello.team", 401, "CredentialsMissing"},
		{"", "/function/nobody.team", 401, "CredentialsMissing"},
		{"", "/function/hello", 401, "CredentialsMissing"},
		{"", "/function/nobody", 401, "CredentialsMissing"},
		{"", "/function/nobody/x", 401, "CredentialsMissing"},
		{"wrong", "/function/hello.team", 401, "CredentialsInvalid"},
		{"wrong", "/function/nobody.team", 401, "CredentialsInvalid"},
		{"for-other", "/function/hello.team", 403, "NotAllowed"},
		{"for-other", "/function/nobody.team", 403, "NotAllowed"},
		{"later", "/function/hello.team", 503, "CredentialsUnchecked"},
		{"for-team", "/function/nobody.team", 404, "FunctionNotFound"},
		{"for-default", "/function/nobody", 404, "FunctionNotFound"},
		{"", "/function/nobody.open", 404, "FunctionNotFound"},
		{"", "/function/open/hello", 401, "CredentialsMissing"},
		{"", "/other", 404, "UnknownPath"},
	} {
		a := wrote(t, w.call(w.as(tt.shown, tt.path)), tt.status, invocation.ExecutedNo)
		p := problem(t, a, tt.reason)
		challenged := strings.HasPrefix(a.header.Get("WWW-Authenticate"), `Bearer realm="windlass"`)
		if challenged != (tt.status == 401) || (tt.shown != "" && strings.Contains(fmt.Sprint(a), tt.shown)) {
			t.Errorf("%q at %s: %+v", tt.shown, tt.path, a)
		}
		if tt.status != 404 && p["function"] != nil {
			t.Errorf("%q at %s is told of %v", tt.shown, tt.path, p["function"])
		}
	}
	if got := w.metric("windlass_gateway_invocations_refused_total", "function_namespace", "", "reason", "CredentialsMissing"); got != 6 {
		t.Errorf("%v refusals are counted, want 6", got)
	}
	for _, path := range []string{"/function/hello.team", "/function/hello"} {
		answers := w.call(w.as("for-all", path))
		w.take().whole(200, "")
		wrote(t, answers, 200, invocation.ExecutedYes)
	}
	answers := w.call(w.as("", "/function/hello.open"))
	w.take().whole(200, "")
	wrote(t, answers, 200, invocation.ExecutedYes)
}

// What has proven who calls is of no use to the function, but who it is.
func TestCredentialsEndAtTheGateway(t *testing.T) {
	w := newGuardedHarness(t, guard{})
	w.put("open", "hello", time.Minute)
	for _, tt := range []struct {
		name, path string
		shown      http.Header
		seen       http.Header
	}{
		{"an own header", "/function/hello", http.Header{invocation.HeaderKey: {"for-all"}, "Authorization": {"Basic eA=="}},
			http.Header{"Windlass-Caller": {"key:for-all"}, "Authorization": {"Basic eA=="}}},
		{"Authorization", "/function/hello", http.Header{"Authorization": {"for-all"}}, http.Header{"Windlass-Caller": {"key:for-all"}}},
		{"where nobody is asked", "/function/hello.open",
			http.Header{invocation.HeaderKey: {"for-all"}, "Authorization": {"for-all"}, "Windlass-Caller": {"forged"}},
			http.Header{"Authorization": {"for-all"}}},
	} {
		r := w.get(tt.path)
		r.Header = tt.shown
		answers := w.call(r)
		i := w.take()
		i.whole(200, "")
		wrote(t, answers, 200, invocation.ExecutedYes)
		got := make(http.Header)
		for _, h := range i.granted.Header {
			switch h.Name {
			case invocation.HeaderKey, invocation.HeaderCaller, "Authorization":
				got.Add(h.Name, h.Value)
			}
		}
		if fmt.Sprint(got) != fmt.Sprint(tt.seen) {
			t.Errorf("%s: the function sees %v, want %v", tt.name, got, tt.seen)
		}
	}
}

func TestANamespaceIsHeldToItsLimits(t *testing.T) {
	w := newGuardedHarness(t, guard{limits: admission.Limits{InFlight: 2, Bytes: 10}})
	w.put("open", "hello", time.Minute)
	post := func(shown, path, body string) *http.Request {
		r := w.request("POST", path, strings.NewReader(body))
		r.Header.Set(invocation.HeaderKey, shown)
		return r
	}
	first := w.call(post("for-default", "/function/hello", "12345678"))
	ticket := w.scheduler.ticket()
	a := wrote(t, w.call(post("for-default", "/function/hello", "123")), 429, invocation.ExecutedNo)
	if p := problem(t, a, "NamespaceBodies"); a.header.Get("Retry-After") != "1" || p["function"] != "default/hello" {
		t.Errorf("said %v, %v", p, a.header)
	}
	second := w.call(post("for-default", "/function/hello", "12"))
	other := w.scheduler.ticket()
	problem(t, wrote(t, w.call(w.as("for-default", "/function/hello")), 429, invocation.ExecutedNo), "NamespaceCalls")
	// Others are not concerned.
	open := w.call(w.as("", "/function/hello.open"))
	w.take().whole(200, "")
	wrote(t, open, 200, invocation.ExecutedYes)

	w.claim(ticket).whole(200, "")
	wrote(t, first, 200, invocation.ExecutedYes)
	until(t, "it has left", func() bool { return w.gateway.Held() == 1 })
	third := w.call(post("for-default", "/function/hello", "12345678"))
	w.take().whole(200, "")
	wrote(t, third, 200, invocation.ExecutedYes)
	w.claim(other).whole(200, "")
	wrote(t, second, 200, invocation.ExecutedYes)

	if got := w.metric("windlass_gateway_invocations_refused_total", "function_namespace", "default"); got != 2 {
		t.Errorf("%v refusals are counted, want 2", got)
	}
	w.catalog.Remove(invocation.FunctionKey{Namespace: "default", Name: "hello"})
	until(t, "the series are gone", func() bool {
		return w.metric("windlass_gateway_invocations_refused_total", "function_namespace", "default") == -1
	})
}

func TestANamespaceIsHeldToItsRate(t *testing.T) {
	w := newGuardedHarness(t, guard{limits: admission.Limits{Rate: 0.01, Burst: 1}})
	answers := w.call(w.as("for-default", "/function/hello"))
	w.take().whole(200, "")
	wrote(t, answers, 200, invocation.ExecutedYes)
	a := wrote(t, w.call(w.as("for-default", "/function/hello")), 429, invocation.ExecutedNo)
	problem(t, a, "NamespaceRate")
	if after := a.header.Get("Retry-After"); after != "100" && after != "99" {
		t.Errorf("Retry-After %s for one call in 100 s", after)
	}
}

func TestOneNamespaceDoesNotFillTheGateway(t *testing.T) {
	w := newHarness(t, func(c *gateway.Config) { c.MaxInvocations = 16 })
	w.put("victim", "hello", time.Minute)
	ctx, cancel := context.WithCancel(t.Context())
	var hog []<-chan answer
	for range 14 {
		hog = append(hog, w.call(w.get("/function/hello/").WithContext(ctx)))
		w.scheduler.ticket()
	}
	problem(t, wrote(t, w.call(w.get("/function/hello/")), 429, invocation.ExecutedNo), "NamespaceShare")
	victim := w.call(w.get("/function/hello.victim"))
	w.take().whole(200, "")
	wrote(t, victim, 200, invocation.ExecutedYes)
	cancel()
	for _, answers := range hog {
		receive(t, answers, "the end of a call")
	}
}

// newFullHarness is one whose gateway has room for 32 KiB of bodies left, beside 16 that
// are handed on as they come, each of a namespace of its own. They take as much whatever
// their length. What it returns ends them.
func newFullHarness(t *testing.T) (w *harness, end func()) {
	const streams = 16
	w = newHarness(t, func(c *gateway.Config) { c.MaxBodyMemory = streams*128<<10 + 32<<10 })
	w.put("other", "hello", time.Minute)
	ends := make([]func(), streams)
	for n := range ends {
		namespace := fmt.Sprint("full-", n)
		w.put(namespace, "hello", time.Minute)
		body, write := io.Pipe()
		t.Cleanup(func() { _ = write.Close() })
		streamed := w.call(w.request("POST", "/function/hello."+namespace, body))
		i := w.take()
		ends[n] = func() { i.whole(200, ""); wrote(t, streamed, 200, invocation.ExecutedYes) }
	}
	return w, func() {
		for _, end := range ends {
			end()
		}
	}
}

func TestBodiesAreBoundedInAll(t *testing.T) {
	w, end := newFullHarness(t)
	a := wrote(t, w.call(w.request("POST", "/function/hello.other", strings.NewReader(strings.Repeat("x", 40<<10)))), 503, invocation.ExecutedNo)
	problem(t, a, "GatewayOverloaded")
	small := w.call(w.request("POST", "/function/hello.other", strings.NewReader(strings.Repeat("x", 20<<10))))
	w.take().whole(200, "")
	wrote(t, small, 200, invocation.ExecutedYes)
	end()
}

func TestL7HeadersAreCountedAsMemory(t *testing.T) {
	w, end := newFullHarness(t)
	large, many := w.get("/function/hello.other"), w.get("/function/hello.other")
	large.Header.Set("X-Large", strings.Repeat("x", 40<<10))
	for n := range 400 {
		many.Header.Set(fmt.Sprintf("X-%d", n), "")
	}
	host := w.get("/function/hello.other")
	host.Host = strings.Repeat("h", 40<<10)
	trailers := w.request("POST", "/function/hello.other", strings.NewReader("x"))
	trailers.Trailer = make(http.Header)
	for n := range 400 {
		trailers.Trailer.Set(fmt.Sprintf("X-%d", n), "")
	}
	for name, r := range map[string]*http.Request{
		"a large header": large, "many empty headers": many, "a long host": host,
		"a long query":  w.get("/function/hello.other?" + strings.Repeat("x", 40<<10)),
		"a long method": w.request(strings.Repeat("M", 40<<10), "/function/hello.other", nil),
	} {
		t.Log(name)
		problem(t, wrote(t, w.call(r), 503, invocation.ExecutedNo), "GatewayOverloaded")
	}
	problem(t, wrote(t, w.callWith(w.http2, trailers), 503, invocation.ExecutedNo), "GatewayOverloaded")
	// Ordinary ones are not counted.
	small := w.request("POST", "/function/hello.other", strings.NewReader(strings.Repeat("x", 32<<10)))
	small.Header.Set("X-Small", strings.Repeat("x", 3<<10))
	answers := w.call(small)
	w.take().whole(200, "")
	wrote(t, answers, 200, invocation.ExecutedYes)
	end()
}

// By HTTP/2 trailers may follow a body of any length, and wait as long as the call does.
func TestTrailersOfARequestByHTTP2AreCountedAsMemory(t *testing.T) {
	w, end := newFullHarness(t)
	r := w.request("POST", "/function/hello.other", strings.NewReader("x"))
	r.Trailer = http.Header{"X-Sum": {strings.Repeat("x", 60<<10)}}
	problem(t, wrote(t, w.callWith(w.http2, r), 503, invocation.ExecutedNo), "GatewayOverloaded")
	end()
}

// leastBodyMemory is the least that Validate takes.
func leastBodyMemory(t *testing.T) int64 {
	t.Helper()
	c := gateway.DefaultConfig()
	c.ClaimAddr = "g:1"
	least := int64(sort.Search(int(c.MaxBodyMemory), func(n int) bool {
		c.MaxBodyMemory = int64(n)
		return c.Validate() == nil
	}))
	if least < 1 {
		t.Fatal("none is refused")
	}
	return least
}

func TestL7TheLeastMemoryHasRoomForAnyOneCall(t *testing.T) {
	least := leastBodyMemory(t)
	w := newHarness(t, func(c *gateway.Config) { c.MaxBodyMemory = least })
	for name, head := range map[string]string{
		"one large header":       "X-Large: " + strings.Repeat("x", 63<<10) + "\r\n",
		"as many as can be read": strings.Repeat("a:\r\n", 16<<10),
		"as many trailers":       "Trailer: " + manyNames(16<<10) + "\r\n",
	} {
		c := w.dial()
		c.send("POST /function/hello/ HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n" + head + "\r\n0\r\n\r\n")
		w.take().whole(200, "")
		if a := c.answer(); a.status != 200 {
			t.Errorf("%s: answered %+v", name, a)
		}
	}
}

// manyNames are n different names of three letters, each with a comma.
func manyNames(n int) string {
	const letters = "abcdefghijklmnopqrstuvwxyz0123456789"
	var names strings.Builder
	for k := range n {
		names.Write([]byte{letters[k%36], letters[k/36%36], letters[k/36/36], ','})
	}
	return names.String()
}

// A refusal needs nothing of the body, and does not wait for it.
func TestARefusalDoesNotWaitForTheBody(t *testing.T) {
	t.Parallel()
	w := newGuardedHarness(t, guard{})
	c := w.dial()
	c.send("POST /function/hello HTTP/1.1\r\nHost: h\r\nContent-Length: 60000\r\n\r\nthe rest never comes")
	if a := c.answer(); a.status != 401 {
		t.Errorf("answered %+v", a)
	}
	c.closed()

	// Nor is it asked for.
	c = w.dial()
	c.send("POST /function/hello HTTP/1.1\r\nHost: h\r\nContent-Length: 60000\r\nExpect: 100-continue\r\n\r\n")
	if a := c.answer(); a.status != 401 {
		t.Errorf("answered %+v", a)
	}
	// A client that has sent all may go on.
	c = w.dial()
	for range 3 {
		c.send("POST /function/hello HTTP/1.1\r\nHost: h\r\nContent-Length: 2\r\n\r\nhi")
		if a := c.answer(); a.status != 401 {
			t.Errorf("answered %+v", a)
		}
	}
}

func TestFunctionsThatCallEachOtherAreCounted(t *testing.T) {
	w := newHarness(t)
	for _, tt := range []struct{ sent, seen string }{{"", "1"}, {"1", "2"}, {"15", "16"}, {"-3", "1"}, {"many", "1"}} {
		r := w.get("/function/hello/")
		r.Header.Set(invocation.HeaderDepth, tt.sent)
		answers := w.call(r)
		i := w.take()
		i.whole(200, "")
		wrote(t, answers, 200, invocation.ExecutedYes)
		for _, h := range i.granted.Header {
			if h.Name == invocation.HeaderDepth && h.Value != tt.seen {
				t.Errorf("after %q the function sees %q, want %q", tt.sent, h.Value, tt.seen)
			}
		}
	}
	for _, sent := range []string{"16", "17", "100000"} {
		r := w.get("/function/hello/")
		r.Header.Set(invocation.HeaderDepth, sent)
		problem(t, wrote(t, w.call(r), 508, invocation.ExecutedNo), "TooDeep")
	}
}

// All that a call takes is free again, however it ended.
func TestWhatACallTakesIsGivenBack(t *testing.T) {
	w := newHarness(t)
	ctx, cancel := context.WithCancel(t.Context())
	gone := w.call(w.request("POST", "/function/hello/", strings.NewReader("x")).WithContext(ctx))
	w.scheduler.ticket()
	cancel()
	receive(t, gone, "the end of the call")
	answers := w.call(w.get("/function/hello/"))
	w.take().die()
	wrote(t, answers, 502, invocation.ExecutedMaybe)
	until(t, "nothing is held", func() bool { return w.gateway.Held() == 0 })
}
