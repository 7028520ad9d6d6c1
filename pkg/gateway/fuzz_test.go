package gateway

import (
	"bufio"
	"bytes"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"net/textproto"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/windlass-dev/windlass/api/v1alpha1"
	controlwire "github.com/windlass-dev/windlass/api/wire/control/v1alpha1"
	"github.com/windlass-dev/windlass/pkg/catalog"
	"github.com/windlass-dev/windlass/pkg/gateway/address"
	"github.com/windlass-dev/windlass/pkg/invocation"
	"github.com/windlass-dev/windlass/pkg/ownership/health"
	"github.com/windlass-dev/windlass/pkg/rollout"
)

// FuzzRoute looks for a path that is taken for a function which it does not name
// letter by letter.
func FuzzRoute(f *testing.F) {
	functions := catalog.New()
	for _, key := range []invocation.FunctionKey{{Namespace: "default", Name: "f"}, {Namespace: "a", Name: "f"}, {Namespace: "default", Name: "a"}} {
		fn := &v1alpha1.Function{}
		fn.Namespace, fn.Name = key.Namespace, key.Name
		functions.Put(rollout.Alone(fn))
	}
	g := &Gateway{deps: Deps{Catalog: functions}, own: newOwnHosts(address.Rules{}, functions)}
	for _, target := range []string{"/function/f.a/x?y", "/function/f", "/function/f%2ea/x", "/function/../f.a", "http://h/function/a/b", "/function/f/%00", "*", "/function/f.a//f?%zz", "/function/a%2ff/\""} {
		f.Add(target)
	}
	f.Fuzz(func(t *testing.T, target string) {
		r, err := http.ReadRequest(bufio.NewReader(strings.NewReader("GET " + target + " HTTP/1.1\r\nHost: h\r\n\r\n")))
		if err != nil {
			return
		}
		to, p := g.route(r)
		if p != nil {
			if p.Executed != invocation.ExecutedNo || p.Status < 400 || len(p.Detail) > invocation.MaxExcerpt {
				t.Errorf("%q: %+v", target, p)
			}
			return
		}
		fn, uri := to.functionOrNil(), to.uri
		_, rest, _ := strings.Cut(target, "/function/")
		named, _, _ := strings.Cut(rest, "/")
		named, _, _ = strings.Cut(named, "?")
		// Every escape was there before, or stands for a byte that must have one.
		path, _, _ := strings.Cut(uri, "?")
		if (named != fn.Name+"."+fn.Namespace && (named != fn.Name || fn.Namespace != "default")) || !strings.HasPrefix(uri, "/") || strings.Count(path, "/") > strings.Count(target, "/") {
			t.Errorf("%q is %s with %q", target, fn.Key(), uri)
		}
	})
}

// FuzzHeaders looks for a header that should not get past the gateway.
func FuzzHeaders(f *testing.F) {
	f.Add([]byte("Windlass-Executed: no\r\nx_windlass_a: b\r\nConnection: x-b, close\r\nX-B: c\r\n\r\n"))
	f.Add([]byte("Te: trailers\r\nX-Forwarded-For: a\r\nX-Forwarded_For: b\r\nContent-Length: 7\r\n\r\n"))
	f.Add([]byte("Connection:, ,\r\nX-A: caf\xe9\r\n b\r\n\r\n"))
	f.Fuzz(func(t *testing.T, lines []byte) {
		header, err := textproto.NewReader(bufio.NewReader(bytes.NewReader(append(lines, "\r\n\r\n"...)))).ReadMIMEHeader()
		if err != nil {
			return
		}
		r := httptest.NewRequest(http.MethodPost, "/", nil)
		r.Header = http.Header(header)
		toFunction := requestHeaders(r, invocation.NewID(time.Now()), callChain{})
		ids := 0
		for _, h := range toFunction {
			switch h.Name {
			case invocation.HeaderInvocationID:
				ids++
				continue
			case invocation.HeaderDepth: // ours, not the client's
				continue
			}
			barred(t, h.Name)
		}
		if ids != 1 {
			t.Errorf("the function sees %d ids", ids)
		}
		toClient := make(http.Header)
		answerHeaders(toClient, toFunction, "/function/f")
		for name := range toClient {
			barred(t, name)
		}
	})
}

func barred(t *testing.T, name string) {
	t.Helper()
	spelled := strings.ToLower(strings.ReplaceAll(name, "_", "-"))
	if hopByHop(http.CanonicalHeaderKey(name)) || strings.HasPrefix(strings.TrimPrefix(spelled, "x-"), "windlass-") ||
		strings.Contains(name, "_") && (strings.HasPrefix(spelled, "x-forwarded-") || spelled == "x-real-ip") {
		t.Errorf("%q gets through", name)
	}
}

// FuzzRefusal makes an answer of anything that a scheduler may send.
func FuzzRefusal(f *testing.F) {
	for _, r := range []*controlwire.Refusal{
		{InvocationId: make([]byte, 16), Reason: controlwire.Refusal_REASON_QUEUE_FULL, Detail: "a\x1b\r\n", RetryAfterNs: 1 << 62},
		{Reason: 77, RetryAfterNs: -1},
	} {
		text, err := proto.Marshal(r)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		r := &controlwire.Refusal{}
		if proto.Unmarshal(data, r) != nil {
			return
		}
		w := httptest.NewRecorder()
		fromRefusal(health.RefusalFromWire(r)).write(w, DetailAll)
		var said map[string]any
		if err := json.Unmarshal(w.Body.Bytes(), &said); err != nil || w.Code < 400 || w.Header().Get(invocation.HeaderExecuted) != "no" || w.Header().Get("Retry-After") == "" {
			t.Errorf("answered %d, %v: %s, %v", w.Code, w.Header(), w.Body, err)
		}
	})
}
