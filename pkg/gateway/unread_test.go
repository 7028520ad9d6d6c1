package gateway_test

import (
	"fmt"
	"net/http"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/windlass-dev/windlass/internal/callwire"
	"github.com/windlass-dev/windlass/pkg/gateway"
	"github.com/windlass-dev/windlass/pkg/invocation"
)

// Answers that clients do not read count against the gateway's memory for bodies. What has no room
// is cut, other namespaces keep theirs, and answers that have begun before go on.
func TestUnreadAnswersCountAsMemory(t *testing.T) {
	const bound, unread = 2 << 20, 64
	large := strings.Repeat("x", 64<<10)
	w := newHarness(t, func(c *gateway.Config) { c.MaxBodyMemory = bound })
	other := w.put("other", "hello", time.Minute)
	stream := w.dial()
	stream.send("GET /function/hello.other/ HTTP/1.1\r\nHost: h\r\n\r\n")
	streaming := w.take()
	streaming.head(200)
	upgraded := w.dial()
	upgraded.send("GET /function/hello.other/ HTTP/1.1\r\nHost: h\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\n")
	echo := w.take()
	echo.sendHead(callwire.Head{Status: 101, Upgrade: "echo", ContentLength: -1})
	upgradedHead, err := http.ReadResponse(upgraded.r, nil)
	if err != nil || upgradedHead.StatusCode != 101 {
		t.Fatalf("%v, %v", upgradedHead, err)
	}
	held := func() float64 { return w.metric("windlass_gateway_bodies_held_bytes") }
	before := held()
	for range unread {
		w.noWindow("/function/hello/")
		w.take().whole(200, large)
		if now := held(); now > bound {
			t.Fatalf("%v bytes are held, and the bound is %d", now, bound)
		}
	}
	until(t, "what has no room is cut", func() bool {
		return w.metric("windlass_gateway_invocations_total", "code", "502") >= unread-bound/float64(len(large))
	})
	if now := held(); now < before+20*float64(len(large)-4<<10) {
		t.Errorf("%v bytes are held, and were %v before: the answers do not count", now, before)
	}
	answers := w.call(w.get("/function/hello.other/"))
	w.take().whole(200, large[:16<<10])
	if a := wrote(t, answers, 200, invocation.ExecutedYes); len(a.body) != 16<<10 {
		t.Errorf("%s has %d bytes of its answer", other.Key(), len(a.body))
	}
	streaming.body("more")
	streaming.end()
	if a := stream.answer(); a.status != 200 || a.body != "more" || a.err != nil {
		t.Errorf("the stream that had begun: %+v", a)
	}
	echo.body("still here")
	got := make([]byte, len("still here"))
	if _, err := upgraded.r.Read(got); err != nil || string(got) != "still here" {
		t.Errorf("the connection that had switched: %q, %v", got, err)
	}
}

// What an answer says besides its headers and its body counts, too: the client may not have read it.
func TestTrailersOfUnreadAnswersCountAsMemory(t *testing.T) {
	const size = 40 << 10
	w := newHarness(t)
	held := func() float64 { return w.metric("windlass_gateway_bodies_held_bytes") }
	w.noWindow("/function/hello/")
	i := w.take()
	names := make([]string, 1000)
	for n := range names {
		names[n] = fmt.Sprintf("X-%d", n)
	}
	i.sendHead(callwire.Head{Status: 200, ContentLength: -1, Trailer: names})
	until(t, "the names count", func() bool { return held() >= float64(128<<10-4<<10+100*len(names)) })
	before := held()
	i.body("x")
	i.sendEnd(callwire.End{Trailer: []callwire.Field{{Name: "X-Large", Value: strings.Repeat("x", size)}}})
	until(t, "the trailers count", func() bool { return held() >= before+size-4<<10 })
}

// A client that is answered has read the answer, so nothing of it counts any more.
func TestAnswersThatWereReadFreeTheirMemory(t *testing.T) {
	eachProtocol(t, func(w *harness, client *http.Client) {
		for range 100 {
			answers := w.callWith(client, w.get("/function/hello/"))
			w.take().whole(200, strings.Repeat("x", 64<<10))
			wrote(w.T, answers, 200, invocation.ExecutedYes)
		}
		answers := w.callWith(client, w.get("/function/hello/"))
		i := w.take()
		i.head(200)
		i.body("streamed")
		i.end()
		wrote(w.T, answers, 200, invocation.ExecutedYes)
		until(w.T, "nothing is held", func() bool { return w.metric("windlass_gateway_bodies_held_bytes") == 0 })
	}, func(c *gateway.Config) { c.MaxBodyMemory = 2 << 20 })
}

func TestTooMuchToAnswerSaysThatTheFunctionMayHaveRun(t *testing.T) {
	w := newHarness(t, func(c *gateway.Config) { c.MaxBodyMemory = 2 << 20 })
	for range 64 {
		w.noWindow("/function/hello/")
		w.take().whole(200, strings.Repeat("x", 64<<10))
	}
	answers := w.call(w.get("/function/hello/"))
	w.take().whole(200, strings.Repeat("x", 64<<10))
	a := wrote(t, answers, 502, invocation.ExecutedMaybe)
	if p := problem(t, a, "OutcomeUnknown"); !strings.Contains(p["detail"].(string), "no room for the function's answer") {
		t.Errorf("the problem is %v", p)
	}
}

// Nothing counts a head that the gateway has refused, and its instance may go on with the call.
func TestAHeadThatIsRefusedIsNotKept(t *testing.T) {
	w := newHarness(t)
	huge := make([]callwire.Field, 600_000)
	heap := func() int64 {
		var m runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&m)
		return int64(m.HeapAlloc)
	}
	before := heap()
	for range 4 {
		answers := w.call(w.get("/function/hello/"))
		w.take().sendHead(callwire.Head{Status: 200, ContentLength: -1, Header: huge})
		problem(t, wrote(t, answers, 502, invocation.ExecutedMaybe), "BadAnswer")
	}
	if grown := heap() - before; grown > 40<<20 {
		t.Errorf("the gateway keeps %d MiB of heads that it has refused", grown>>20)
	}
	runtime.KeepAlive(huge)
}
