package loadgen

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// stalling is a driver whose one connection leads to a server that takes 1 ms for a call, and
// 500 ms for the tenth.
func stalling(t *testing.T, drive Drive) *Driver {
	t.Helper()
	ours, theirs := net.Pipe()
	t.Cleanup(func() { _ = ours.Close() })
	go func() {
		defer theirs.Close()
		from := bufio.NewReader(theirs)
		for n := 1; ; n++ {
			if _, err := http.ReadRequest(from); err != nil {
				return
			}
			takes := time.Millisecond
			if n == 10 {
				takes = 500 * time.Millisecond
			}
			time.Sleep(takes)
			fmt.Fprint(theirs, "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
		}
	}()
	drive.URLs, drive.Connections = []string{"http://pipe/"}, 1
	return &Driver{drive, []*lane{{addr: "pipe", message: NewMessage("pipe", "/", 0), conn: &Conn{conn: ours, from: bufio.NewReader(ours)}}}}
}

func TestAnOpenLoopOmitsNoStall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := stalling(t, Drive{Rate: 100, Span: 2 * time.Second, Timeout: time.Minute})
		got := d.Run(t.Context())
		if got.Failed > 0 || got.Calls < 150 || got.Calls > 250 {
			t.Fatalf("%d calls succeeded and %d failed, want about 200", got.Calls, got.Failed)
		}
		// Some fifty calls were due during the stall, and waited half of it on average.
		if got.Latency.P90 < 200*time.Millisecond || got.Latency.Max < 500*time.Millisecond || got.Latency.P50 > 20*time.Millisecond {
			t.Errorf("the stall shows as %+v", got.Latency)
		}
		if got.LateP99 > time.Millisecond {
			t.Errorf("the sender was late by %v", got.LateP99)
		}
		d.Close()
	})
}

func TestAClosedLoopShowsAStallOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := stalling(t, Drive{Span: 2 * time.Second, Timeout: time.Minute})
		got := d.Run(t.Context())
		if got.Calls < 1490 || got.Calls > 1502 || got.Took < 2*time.Second {
			t.Errorf("%d calls in %v, want about 1,500 in 2 s", got.Calls, got.Took)
		}
		if got.Latency.P99 > 2*time.Millisecond || got.Latency.Max < 500*time.Millisecond {
			t.Errorf("one call of 1,500 stalled, and that shows as %+v", got.Latency)
		}
		d.Close()
	})
}

func TestCallsThatWaitedTooLongFail(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := stalling(t, Drive{Rate: 5000, Span: 2 * time.Second, Timeout: 501 * time.Millisecond})
		got := d.Run(t.Context())
		if got.Failed == 0 || got.Failure != errOverdue.Error() {
			t.Errorf("%d calls failed, because: %q", got.Failed, got.Failure)
		}
		d.Close()
	})
}

// Clients that hang up leave the others alone, and what those learn is kept.
func TestEveryOtherClientHangsUp(t *testing.T) {
	var left atomic.Int64
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		select {
		case <-r.Context().Done():
			left.Add(1)
		case <-time.After(2 * time.Millisecond):
			w.Header().Set(RunningHeader, "7")
		}
	}))
	defer server.Close()
	d, err := Connect(t.Context(), Drive{
		URLs: []string{server.URL + "/"}, Connections: 4, Span: 200 * time.Millisecond, Timeout: time.Minute, HangUpWithin: 4 * time.Millisecond,
	})
	if err != nil {
		t.Fatal(err)
	}
	got := d.Run(t.Context())
	if got.Failed > 0 || got.Calls == 0 || got.HungUp == 0 || got.MostRunning != 7 {
		t.Errorf("%+v", got)
	}
	server.Close() // waits for all calls
	if left.Load() == 0 {
		t.Error("no client was seen to leave")
	}
	if err := (Drive{URLs: []string{"http://a"}, Connections: 1, Span: 1, Timeout: 1, Rate: 1, HangUpWithin: 1}).Validate(); err == nil {
		t.Error("clients of an open loop hang up")
	}
}

// A server that accepts no connection must not hold a call for longer than one that accepts it and does not answer.
func TestConnectingIsAPartOfACall(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	l := &lane{addr: listener.Addr().String(), message: NewMessage("a", "/", 0)}
	var dialing *net.OpError
	if err := l.call(t.Context(), -time.Second); !errors.As(err, &dialing) || dialing.Op != "dial" || !dialing.Timeout() {
		t.Errorf("a call without any time ends with %v", err)
	}
	d := &Driver{drive: Drive{HangUpWithin: 1, Timeout: 1}}
	spent := newTotals()
	for range 100 {
		d.callOnce(t.Context(), &lane{addr: l.addr, message: l.message}, spent)
		if spent.hungUp > 0 {
			return
		}
	}
	t.Errorf("no client hangs up while it connects: %+v", spent.driven(1))
}

func TestADriveCallsEachURLOverItsConnections(t *testing.T) {
	seen := make(chan string, 100_000)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		n, _ := io.Copy(io.Discard, r.Body)
		seen <- fmt.Sprint(r.Method, " ", r.URL, " ", n)
		if r.URL.Path == "/b" {
			w.Header().Set("Connection", "close")
		}
		_, _ = io.WriteString(w, strings.Repeat("x", 100_000))
	}))
	defer server.Close()
	d, err := Connect(t.Context(), Drive{
		URLs: []string{server.URL + "/a?x=1", server.URL + "/b"}, Body: 1 << 20, Connections: 3, Span: time.Millisecond, Timeout: time.Minute,
	})
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	got := d.Run(t.Context())
	if got.Failed > 0 || got.Calls < 3 {
		t.Errorf("%d calls, %d failed: %s", got.Calls, got.Failed, got.Failure)
	}
	counts := map[string]int{}
	for range got.Calls + 3 {
		counts[<-seen]++
	}
	if a, b := counts["POST /a?x=1 1048576"], counts["POST /b 1048576"]; len(counts) != 2 || a < 4 || b < 2 {
		t.Errorf("called were %v", counts)
	}
}

func TestADriveNeedsServersThatAnswer(t *testing.T) {
	refusing := httptest.NewServer(http.NotFoundHandler())
	defer refusing.Close()
	drive := Drive{URLs: []string{refusing.URL}, Connections: 2, Span: time.Second, Timeout: time.Minute}
	if _, err := Connect(t.Context(), drive); err == nil || !strings.Contains(err.Error(), "404") {
		t.Errorf("connected: %v", err)
	}
	drive.Connections = 0
	if _, err := Connect(t.Context(), drive); err == nil {
		t.Error("connected without a connection")
	}
}
