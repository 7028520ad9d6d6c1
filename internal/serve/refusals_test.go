package serve

import (
	"bufio"
	"context"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// pose is an answer that looks like one of net/http's own.
const pose = "HTTP/1.1 400 Bad Request\r\nContent-Type: text/plain; charset=utf-8\r\nConnection: close\r\n\r\n400 Bad Request"

// calls serves a handler by Calls, and returns its address and its metrics.
func calls(t *testing.T, handler http.HandlerFunc) (addr string, reg *prometheus.Registry) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	reg = prometheus.NewRegistry()
	go func() { ended <- Calls(ctx, l, handler, time.Second, reg, slog.New(slog.DiscardHandler)) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	return l.Addr().String(), reg
}

func dial(t *testing.T, addr string) net.Conn {
	t.Helper()
	conn, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	_ = conn.SetDeadline(time.Now().Add(20 * time.Second))
	return conn
}

func TestTheServersOwnRefusalsSayThatNothingRan(t *testing.T) {
	for name, c := range map[string]struct {
		text string
		code string
	}{
		"no HTTP":                          {"nonsense\r\n\r\n", "400"},
		"two lengths":                      {"POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n", "400"},
		"too many headers":                 {"GET / HTTP/1.1\r\nHost: h\r\nX-A: " + strings.Repeat("a", 1<<20) + "\r\n\r\n", "431"},
		"an unknown encoding":              {"POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: x\r\n\r\n", "501"},
		"another version":                  {"GET / HTTP/3.0\r\nHost: h\r\n\r\n", "505"},
		"an unknown expectation":           {"GET / HTTP/1.1\r\nHost: h\r\nExpect: x\r\n\r\n", "417"},
		"no HTTP behind a request that is": {"GET / HTTP/1.1\r\nHost: h\r\n\r\nnonsense\r\n\r\n", "400"},
	} {
		t.Run(name, func(t *testing.T) {
			addr, reg := calls(t, func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "good") })
			conn := dial(t, addr)
			go func() { _, _ = io.WriteString(conn, c.text) }()
			r := bufio.NewReader(conn)
			for {
				resp, err := http.ReadResponse(r, nil)
				if err != nil {
					t.Fatal(err)
				}
				body, err := io.ReadAll(resp.Body)
				if err != nil {
					t.Fatal(err)
				}
				if string(body) == "good" {
					continue
				}
				if !strings.HasPrefix(resp.Status, c.code) || resp.Header.Get("Windlass-Executed") != "no" {
					t.Errorf("answered %s with %v", resp.Status, resp.Header)
				}
				break
			}
			families, err := reg.Gather()
			if err != nil || len(families) != 2 || len(families[1].GetMetric()) != 1 {
				t.Fatalf("%v, %v", families, err)
			}
			counted := families[1].GetMetric()[0]
			if families[1].GetName() != "windlass_http_requests_refused_total" || families[0].GetMetric()[0].GetCounter().GetValue() != 0 || counted.GetCounter().GetValue() != 1 || counted.GetLabel()[0].GetValue() != c.code {
				t.Errorf("counted %v", families)
			}
		})
	}
}

// A function may answer with anything, also with what looks like a refusal. Were it
// changed, the answer would not have the length that it says.
func TestAnAnswerThatPosesAsARefusalIsNotChanged(t *testing.T) {
	addr, _ := calls(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Length", "1"+strings.Repeat("0", 4))
		_ = http.NewResponseController(w).Flush()
		_, _ = io.WriteString(w, pose+strings.Repeat(" ", 10_000-len(pose)))
	})
	for range 2 {
		resp, err := http.Get("http://" + addr)
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(resp.Body)
		_ = resp.Body.Close()
		if err != nil || !strings.HasPrefix(string(body), pose) || len(body) != 10_000 {
			t.Errorf("%d bytes, %v: %.200q", len(body), err, body)
		}
	}
	http.DefaultClient.CloseIdleConnections()
}

// FuzzRefusal looks for an answer that cannot be told from what follows it.
func FuzzRefusal(f *testing.F) {
	f.Add([]byte(pose))
	f.Add([]byte("HTTP/1.1 200 OK\r\n\r\n"))
	f.Add([]byte("HTTP/1.1 4\r\n"))
	f.Fuzz(func(t *testing.T, p []byte) {
		code, at := refusal(p)
		if code != "" && (len(code) != 3 || at > len(p) || string(p[at-2:at]) != "\r\n") {
			t.Errorf("%q is %q and goes on at %d", p, code, at)
		}
	})
}
