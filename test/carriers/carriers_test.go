package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/windlass-dev/windlass/internal/bench/peers"
	"github.com/windlass-dev/windlass/internal/callwire"
	"github.com/windlass-dev/windlass/pkg/invocation"
)

// carry puts a gateway and one agent in front of a function, and returns the gateway's URL.
func carry(t *testing.T, v variant, function http.Handler) string {
	t.Helper()
	to := httptest.NewServer(function)
	t.Cleanup(to.Close)
	out, in := io.Pipe()
	gatewayCtx, stop := context.WithCancel(t.Context())
	gone := make(chan error, 2)
	go func() { gone <- runGateway(gatewayCtx, v.gateway, in) }()
	var ready peers.Ready
	if err := json.NewDecoder(out).Decode(&ready); err != nil {
		t.Fatal(err)
	}
	go func() {
		gone <- runAgent(gatewayCtx, v.agent, "one", ready.Wire, to.Listener.Addr().String(), io.Discard)
	}()
	t.Cleanup(func() {
		stop()
		<-gone
		<-gone
	})
	return ready.URL
}

func do(t *testing.T, method, url, sent string) (*http.Response, string) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), method, url, strings.NewReader(sent))
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("A", "b")
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	got, err := io.ReadAll(answer.Body)
	if err != nil {
		t.Fatal(err)
	}
	return answer, string(got)
}

// What is measured side by side does the same.
func TestAllCarriersBringTheFunctionTheSame(t *testing.T) {
	for _, v := range carriers() {
		t.Run(v.name, func(t *testing.T) {
			url := carry(t, v, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				body, _ := io.ReadAll(r.Body)
				w.Header()["X"] = []string{"1", "2"}
				w.WriteHeader(http.StatusTeapot)
				fmt.Fprintf(w, "%s %s %s %q %s %d", r.Method, r.RequestURI, r.Header.Get("A"), body, r.Header.Get("X-Forwarded-For"), len(r.Header.Get(invocation.HeaderInvocationID)))
				if r.Header.Get(carrierHeader) != "" {
					t.Error("the function sees the carrier's header")
				}
			}))
			for i := range 3 {
				for method, sent := range map[string]string{"GET": "", "POST": "body", "PUT": "", "HEAD": ""} {
					answer, got := do(t, method, url+"/p?q=1", sent)
					want := fmt.Sprintf("%s /p?q=1 b %q 127.0.0.1 32", method, sent)
					if method == http.MethodHead {
						want = ""
					}
					if got != want || answer.StatusCode != http.StatusTeapot || len(answer.Header["X"]) != 2 || answer.Header.Get(carrierHeader) != "" {
						t.Errorf("%d: %s %v %q, want %q", i, answer.Status, answer.Header, got, want)
					}
				}
			}
		})
	}
}

func TestOneCallRunsAtATimeAndOthersWait(t *testing.T) {
	for _, v := range carriers() {
		t.Run(v.name, func(t *testing.T) {
			var running, most atomic.Int32
			url := carry(t, v, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				most.Store(max(most.Load(), running.Add(1)))
				running.Add(-1)
				w.WriteHeader(http.StatusNoContent)
			}))
			answered := make(chan int)
			for range 20 {
				go func() {
					answer, _ := do(t, http.MethodGet, url, "")
					answered <- answer.StatusCode
				}()
			}
			for range 20 {
				if status := <-answered; status != http.StatusNoContent {
					t.Errorf("answered %d", status)
				}
			}
			if most.Load() != 1 {
				t.Errorf("%d calls ran at a time", most.Load())
			}
		})
	}
}

// A client that leaves ends the function's request, and the next call runs.
func TestACallThatNobodyWaitsForEnds(t *testing.T) {
	for _, v := range carriers() {
		t.Run(v.name, func(t *testing.T) {
			begun, ended := make(chan bool), make(chan bool)
			url := carry(t, v, http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
				if r.URL.Path != "/slow" {
					return
				}
				begun <- true
				<-r.Context().Done()
				ended <- true
			}))
			ctx, leave := context.WithCancel(t.Context())
			left := make(chan error)
			go func() {
				request, _ := http.NewRequestWithContext(ctx, http.MethodGet, url+"/slow", nil)
				_, err := http.DefaultClient.Do(request)
				left <- err
			}()
			<-begun
			leave()
			<-ended
			if err := <-left; !errors.Is(err, context.Canceled) {
				t.Error(err)
			}
			if answer, _ := do(t, http.MethodGet, url, ""); answer.StatusCode != http.StatusOK {
				t.Errorf("the next call is answered %s", answer.Status)
			}
		})
	}
}

func variantOf(t *testing.T, name string) variant {
	t.Helper()
	for _, v := range variants {
		if v.name == name {
			return v
		}
	}
	t.Fatalf("there is no variant %s", name)
	return variant{}
}

func TestARelayPassesLongAnswersAndThoseWithoutALength(t *testing.T) {
	long := strings.Repeat("0123456789abcdef", 20_000)
	url := carry(t, variantOf(t, "http_relayed"), http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/long":
			w.Header().Set("Content-Length", fmt.Sprint(len(long)))
			fmt.Fprint(w, long)
		case "/chunks":
			for part := long; part != ""; part = part[len(part)/2+1:] {
				fmt.Fprint(w, part[:len(part)/2+1])
				w.(http.Flusher).Flush()
			}
		case "/last":
			w.Header().Set("Connection", "close")
			w.Header().Set("Content-Length", fmt.Sprint(len(long)))
			fmt.Fprint(w, long)
		case "/close":
			conn, _, _ := http.NewResponseController(w).Hijack()
			_, _ = io.WriteString(conn, "HTTP/1.0 200 OK\r\n\r\n"+long)
			_ = conn.Close()
		case "/wrong":
			conn, _, _ := http.NewResponseController(w).Hijack()
			_, _ = io.WriteString(conn, "HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nab")
			_ = conn.Close()
		}
	}))
	for range 2 {
		for _, path := range []string{"/long", "/chunks", "/close", "/last"} {
			if answer, got := do(t, http.MethodGet, url+path, ""); got != long || answer.StatusCode != http.StatusOK {
				t.Errorf("%s: %s with %d bytes, want %d", path, answer.Status, len(got), len(long))
			}
		}
		if answer, _ := do(t, http.MethodGet, url+"/wrong", ""); answer.StatusCode != http.StatusBadGateway {
			t.Errorf("an ambiguous answer is answered %s", answer.Status)
		}
	}
}

// lentRelay is a relay, and the gateway's end of its connection.
func lentRelay(t *testing.T, function http.Handler) (*relay, net.Conn, chan error) {
	t.Helper()
	to := httptest.NewServer(function)
	t.Cleanup(to.Close)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	near, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	far, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = near.Close()
		_ = far.Close()
	})
	r, ended := newRelay(far, to.Listener.Addr().String()), make(chan error, 1)
	go func() { ended <- r.serve() }()
	return r, near, ended
}

func request(number int64) string {
	return "GET / HTTP/1.1\r\n" + string(appendMark(nil, mark{number, 1, int64(time.Minute)})) + "Host: h\r\n\r\n"
}

func TestAPlaceThatIsTakenBackRunsNothing(t *testing.T) {
	r, gateway, ended := lentRelay(t, http.HandlerFunc(func(http.ResponseWriter, *http.Request) { t.Error("the function was called") }))
	r.slot.takeBack()
	_, _ = io.WriteString(gateway, request(1))
	answer, err := http.ReadResponse(bufio.NewReader(gateway), nil)
	if err != nil || answer.StatusCode != http.StatusServiceUnavailable || answer.Header.Get(carrierHeader) != "1 0 0 0" {
		t.Errorf("%+v, %v", answer, err)
	}
	if err := <-ended; !errors.Is(err, errTakenBack) {
		t.Error(err)
	}
}

func TestAPlaceTakesOneCallAtATime(t *testing.T) {
	begun, over := make(chan bool), make(chan bool)
	_, gateway, ended := lentRelay(t, http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		begun <- true
		<-r.Context().Done()
		over <- true
	}))
	_, _ = io.WriteString(gateway, request(1))
	<-begun
	_, _ = io.WriteString(gateway, request(2))
	if err := <-ended; !errors.Is(err, errBusy) {
		t.Error(err)
	}
	<-over
}

func TestNumbersOfAPlaceRise(t *testing.T) {
	_, gateway, ended := lentRelay(t, http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	in := bufio.NewReader(gateway)
	for _, number := range []int64{3, 5} {
		_, _ = io.WriteString(gateway, request(number))
		if answer, err := http.ReadResponse(in, nil); err != nil || !strings.HasPrefix(answer.Header.Get(carrierHeader), fmt.Sprint(number)+" 1 ") {
			t.Fatalf("%+v, %v", answer, err)
		}
	}
	_, _ = io.WriteString(gateway, request(5))
	if err := <-ended; !errors.Is(err, errOldNumber) {
		t.Error(err)
	}
}

// The first place that a call finds may have ended meanwhile.
func TestAGatewayPassesOverAPlaceThatIsGone(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	agent, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	c, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	p := newHTTPPlace(c)
	p.wasIdle = true
	var g httpGateway
	g.places.give(p)
	_ = agent.Close()
	_, _ = c.Read(make([]byte, 1)) // the end has come
	call := newHTTPCall(httptest.NewRequest(http.MethodGet, "/", nil), nil)
	if g.places.serve(call) {
		t.Error("the call was sent to a place that is gone")
	}
	if <-p.ended; !g.places.leave(call) {
		t.Error("the call does not wait")
	}
}

func TestTheTimeOfACallEndsIt(t *testing.T) {
	var s slot
	ended := make(chan bool)
	if err := s.admit(2, time.Now().Add(time.Hour), func() {}); err != nil || !s.vacate() {
		t.Fatal(err)
	}
	if err := s.admit(4, time.Now(), func() { close(ended) }); err != nil {
		t.Fatal(err)
	}
	<-ended
}

func TestAFramesCallIsAsSmallAsItCanBe(t *testing.T) {
	m := callwire.Call{Method: "POST", RequestURI: "/a", Host: "h", Header: []callwire.Field{{Name: "A", Value: "b"}}, Body: []byte("xy")}
	if got, want := string(appendRequest(nil, &m)), "POST /a HTTP/1.1\r\nHost: h\r\nContent-Length: 2\r\nA: b\r\n\r\nxy"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}
