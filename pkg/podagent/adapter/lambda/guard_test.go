package lambda

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/windlass-dev/windlass/pkg/podagent/adapter"
)

const self = "made up at the start"

// dialled is a connection that the test writes requests to by hand. What comes back is
// dropped.
func (s *harness) dialled() net.Conn {
	s.Helper()
	c, err := s.l.dial(s.Context())
	if err != nil {
		s.Fatal(err)
	}
	go func() { _, _ = io.Copy(io.Discard, c) }()
	return c
}

func getNext(headers string) string {
	return "GET " + base + "/invocation/next HTTP/1.1\r\nHost: 127.0.0.1:9001\r\n" + headers + "\r\n"
}

func TestA3ARuntimeClientThatEndsFailsItsCallAtOnce(t *testing.T) {
	for name, c := range map[string]struct {
		headers string
		lost    bool
	}{
		"that keeps its connection": {headClient + ": " + self + "\r\n", true},
		// It may do so between the event and its answer, as curl does.
		"that closes connections": {"", false},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, 1, func(s *harness) {
				conn := s.dialled()
				if _, err := io.WriteString(conn, getNext(c.headers)); err != nil {
					t.Fatal(err)
				}
				begun := time.Now()
				p := s.invoke("a", "1")
				synctest.Wait()
				conn.Close()
				if !c.lost {
					s.want(s.post("a", "response", "2"), 202, "OK")
					s.wantAnswer(p, 200, "2")
					return
				}
				s.wantError(p.result(), adapter.ErrFunctionLost)
				if took := time.Since(begun); took != 0 { // the bubble's own time
					t.Errorf("it took %v", took)
				}
			})
		})
	}
}

// write writes requests to a connection, and waits for what comes of them.
func (s *harness) write(conn net.Conn, request string) {
	s.Helper()
	if _, err := io.WriteString(conn, request); err != nil {
		s.Fatal(err)
	}
	synctest.Wait()
}

func postAnswer(id string) string {
	return "POST " + base + "/invocation/" + id + "/response HTTP/1.1\r\nHost: 127.0.0.1:9001\r\nContent-Length: 1\r\n\r\n2"
}

func TestA3ANativeClientThatEndsIsKnownByWhatItUsedToDo(t *testing.T) {
	const usual = 10 * time.Second
	for name, c := range map[string]struct {
		concurrency int
		// before is how the client did its first call, on the connection of the second.
		before func(s *harness, conn net.Conn)
		// other says that it has another connection.
		other bool
		after time.Duration
		lost  bool
	}{
		"sooner than it used to keep it": {1, oneCall(usual), false, usual / 2, true},
		"after longer, as idle ones are": {1, oneCall(usual), false, usual, false},
		"while it has another":           {1, oneCall(usual), true, usual / 2, false},
		"in its first call":              {1, func(*harness, net.Conn) {}, false, usual / 2, false},
		"one of many connections":        {2, oneCall(usual), false, usual / 2, false},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, c.concurrency, func(s *harness) {
				conn := s.dialled()
				c.before(s, conn)
				p := s.invoke("a", "1")
				s.write(conn, getNext(""))
				if c.other {
					other := s.dialled()
					defer other.Close()
					synctest.Wait()
				}
				time.Sleep(c.after)
				broke := time.Now()
				conn.Close()
				synctest.Wait()
				if c.lost {
					s.wantError(p.result(), adapter.ErrFunctionLost)
					if took := time.Since(broke); took != 0 { // the bubble's own time
						t.Errorf("it took %v", took)
					}
				}
				// Should it live after all, it must not be given an error, by which it might end.
				s.want(s.post("a", "response", "2"), 202, "OK")
				if !c.lost {
					s.wantAnswer(p, 200, "2")
				}
			})
		})
	}
}

// oneCall is a client that does one call that takes so long.
func oneCall(takes time.Duration) func(*harness, net.Conn) {
	return func(s *harness, conn net.Conn) {
		s.Helper()
		p := s.invoke("before", "1")
		s.write(conn, getNext(""))
		time.Sleep(takes)
		s.write(conn, postAnswer("before"))
		s.wantAnswer(p, 200, "2")
	}
}

func TestA3AClientIsGoneWhenItsLastConnectionIs(t *testing.T) {
	inBubble(t, 1, func(s *harness) {
		conn, other := s.dialled(), s.dialled()
		oneCall(time.Second)(s, conn)
		p := s.invoke("a", "1")
		s.write(conn, getNext(""))
		conn.Close()
		synctest.Wait()
		other.Close()
		s.wantError(p.result(), adapter.ErrFunctionLost)
	})
}

func TestA3AClientThatConnectsAnewLives(t *testing.T) {
	inBubble(t, 1, func(s *harness) {
		conn, other := s.dialled(), s.dialled()
		oneCall(time.Second)(s, conn)
		p := s.invoke("a", "1")
		s.write(conn, getNext(""))
		conn.Close()
		synctest.Wait()
		again := s.dialled()
		synctest.Wait()
		other.Close()
		synctest.Wait()
		s.write(again, postAnswer("a"))
		s.wantAnswer(p, 200, "2")
		again.Close()
	})
}

func TestS13OnlyTheRuntimeIsServed(t *testing.T) {
	ask := func(s *harness, host string, headers ...string) int {
		s.Helper()
		r, err := http.NewRequest(http.MethodPost, "http://127.0.0.1:9001"+base+"/invocation/none/response", nil)
		if err != nil {
			s.Fatal(err)
		}
		r.Host = host
		for i := 0; i < len(headers); i += 2 {
			r.Header.Set(headers[i], headers[i+1])
		}
		resp, err := s.client.Do(r)
		if err != nil {
			s.Fatal(err)
		}
		defer resp.Body.Close()
		return resp.StatusCode
	}
	const local, served, refused = "127.0.0.1:9001", http.StatusBadRequest, http.StatusForbidden
	for name, c := range map[string]struct {
		host    string
		headers []string
		want    int
	}{
		"a client of AWS":             {local, nil, served},
		"by name":                     {"localhost:9001", nil, served},
		"fetch of Node.js":            {local, []string{"Sec-Fetch-Mode", "cors"}, served},
		"a name that was led here":    {"attacker.example", nil, refused},
		"no name":                     {"", nil, served}, // Go writes the address
		"a page of somebody else":     {local, []string{"Origin", "https://attacker.example"}, refused},
		"a browser":                   {local, []string{"Sec-Fetch-Site", "none"}, refused},
		"a browser on another's part": {local, []string{"Sec-Fetch-Site", "cross-site"}, refused},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, 1, func(s *harness) {
				if got := ask(s, c.host, c.headers...); got != c.want {
					t.Errorf("status %d, want %d", got, c.want)
				}
			})
		})
	}
	t.Run("and alone if it named itself", func(t *testing.T) {
		inBubble(t, 4, func(s *harness) {
			for _, c := range []struct {
				headers []string
				want    int
			}{
				{[]string{headClient, self}, served},
				{nil, refused},
				{[]string{headClient, "another"}, refused},
				{[]string{headClient, self}, served},
			} {
				if got := ask(s, local, c.headers...); got != c.want {
					t.Errorf("%q: status %d, want %d", c.headers, got, c.want)
				}
			}
		})
	})
	t.Run("and from the first request on", func(t *testing.T) {
		inBubble(t, 1, func(s *harness) {
			if got := ask(s, local); got != served {
				t.Fatalf("status %d", got)
			}
			if got := ask(s, local, headClient, "a late client"); got != served {
				t.Errorf("status %d", got)
			}
			if got := ask(s, local); got != served {
				t.Errorf("somebody who came late is served alone: status %d", got)
			}
		})
	})
}

// isClosed tells whether the server has closed a connection.
func isClosed(c net.Conn) bool {
	synctest.Wait()
	_, err := c.Write([]byte("x"))
	return err != nil
}

func TestS5ConnectionsAreBounded(t *testing.T) {
	inBubble(t, 3, func(s *harness) {
		const most = 2*3 + extraConns
		var conns []net.Conn
		for range most {
			conns = append(conns, s.dialled())
		}
		if isClosed(conns[most-1]) {
			t.Error("the last one of those that are allowed was closed")
		}
		if !isClosed(s.dialled()) {
			t.Error("one too many was not closed")
		}
		conns[0].Close()
		synctest.Wait()
		another := s.dialled()
		if isClosed(another) {
			t.Error("there is no room although one was closed")
		}
		for _, c := range append(conns, another) {
			c.Close()
		}
	})
}

func TestS5HeadsAreBoundedInTimeAndSize(t *testing.T) {
	t.Run("a head that does not end", func(t *testing.T) {
		inBubble(t, 1, func(s *harness) {
			c := s.dialled()
			defer c.Close()
			if _, err := io.WriteString(c, "GET /ping HTTP/1.1\r\nHost: "); err != nil {
				t.Fatal(err)
			}
			time.Sleep(headTimeout + time.Second)
			if !isClosed(c) {
				t.Error("the server still waits")
			}
		})
	})
	t.Run("heads that grow", func(t *testing.T) {
		inBubble(t, 20, func(s *harness) {
			taken := 0
			var conns []net.Conn
			for range 20 {
				c := s.dialled()
				defer c.Close()
				conns = append(conns, c)
				_, _ = fmt.Fprintf(c, "POST %s/init/error HTTP/1.1\r\nHost: 127.0.0.1\r\nLambda-Runtime-Function-XRay-Error-Cause: %s", base, strings.Repeat("x", 2*commonHead))
			}
			for _, c := range conns {
				if !isClosed(c) {
					taken++
				}
			}
			if taken != maxLarge {
				t.Errorf("%d connections may send large heads at a time, want %d", taken, maxLarge)
			}
		})
	})
	t.Run("a cause as large as AWS takes it", func(t *testing.T) {
		inBubble(t, 1, func(s *harness) {
			for range 3 * maxLarge { // one after the other
				header := http.Header{"Lambda-Runtime-Function-Xray-Error-Cause": {strings.Repeat("x", 1<<20)}}
				got, err := s.do(context.Background(), http.MethodPost, base+"/invocation/none/error", header, nil)
				if err != nil || got.status != http.StatusBadRequest {
					t.Fatalf("%d, %v", got.status, err)
				}
			}
		})
	})
	t.Run("a head that is larger", func(t *testing.T) {
		inBubble(t, 1, func(s *harness) {
			header := http.Header{"X": {strings.Repeat("x", 2<<20)}}
			got, err := s.do(context.Background(), http.MethodGet, "/ping", header, nil)
			if err == nil && got.status != http.StatusRequestHeaderFieldsTooLarge {
				t.Errorf("status %d", got.status)
			}
		})
	})
}
