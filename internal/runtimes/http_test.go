package runtimes

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/windlass-dev/windlass/api/v1alpha1"
)

func eachSite(t *testing.T, test func(t *testing.T, s *site), env ...string) {
	eachLanguage(t, func(t *testing.T, runtime v1alpha1.RuntimeName) {
		test(t, startSite(t, runtime, "app.application", httpSources[runtime], env...))
	})
}

// text is a body of known length, chunked one whose length net/http cannot see.
func text(body string) func() io.Reader {
	return func() io.Reader { return strings.NewReader(body) }
}

func chunked(parts ...string) func() io.Reader {
	return func() io.Reader {
		readers := make([]io.Reader, len(parts))
		for i, part := range parts {
			readers[i] = strings.NewReader(part)
		}
		return io.MultiReader(readers...)
	}
}

func TestRequestsAreAnsweredOnOneConnection(t *testing.T) {
	requests := []struct {
		name, method, path string
		body               func() io.Reader
		header             []string
		status             int
		want               string
	}{
		{"GET", "GET", "/echo?a=1&b=%20", nil, nil, 200, "GET a=1&b=%20 None None None;"},
		{"POST", "POST", "/echo", text("body ☂"), []string{"Content-Type", "text/x"}, 200, "POST  text/x 8 None;body ☂"},
		{"POST of nothing", "POST", "/echo", text(""), nil, 200, "POST  None 0 None;"},
		{"chunked POST", "POST", "/echo", chunked("first ", "second"), nil, 200,
			"POST  None None None;first second"},
		{"long chunked POST", "PUT", "/echo", chunked(strings.Repeat("x", 200_000)), nil, 200,
			"PUT  None None None;" + strings.Repeat("x", 200_000)},
		{"header given twice", "GET", "/echo", nil, []string{"X-Twice", "1", "X-Twice", "2"}, 200, "GET  None None 1,2;"},
		{"as many headers as the gateway admits, and more", "GET", "/echo", nil, []string{"X-Long", strings.Repeat("x", 70<<10)}, 200, "GET  None None None;"},
		{"body that is not read", "POST", "/ignore", text(strings.Repeat("x", 300_000)), nil, 200, "ignored"},
		{"chunked body that is not read", "POST", "/ignore", chunked(strings.Repeat("x", 300_000)), nil, 200, "ignored"},
		{"expecting 100-continue", "POST", "/echo", text("body"), []string{"Expect", "100-continue"}, 200, "POST  None 4 None;body"},
		{"long answer", "GET", "/long", nil, nil, 200, strings.Repeat("x", 300_000)},
		{"encoded path", "GET", "/caf%C3%A9/x%2Fy", nil, nil, 404, "/café/x/y"},
		{"exception", "GET", "/throw", nil, nil, 500, "Internal Server Error\n"},
		{"exception with a body left", "POST", "/throw", text("body"), nil, 500, "Internal Server Error\n"},
		{"no content", "GET", "/status/204", nil, nil, 204, ""},
		{"not modified", "GET", "/status/304", nil, nil, 304, ""},
		{"empty", "GET", "/status/201", nil, nil, 201, ""},
		{"after all that", "GET", "/echo", nil, nil, 200, "GET  None None None;"},
	}
	eachSite(t, func(t *testing.T, s *site) {
		for i, r := range requests {
			var body io.Reader
			if r.body != nil {
				body = r.body()
			}
			got := s.ask(r.method, r.path, body, r.header...)
			if got.status != r.status || got.body != r.want {
				t.Errorf("%s: got %d %.80q, want %d %.80q", r.name, got.status, got.body, r.status, r.want)
			}
			if i > 0 && !got.reused {
				t.Errorf("%s: the connection of the request before was not used again", r.name)
			}
		}
		s.expectError("before the head")
	})
}

func TestHEADHasTheHeadersAndNoBody(t *testing.T) {
	eachSite(t, func(t *testing.T, s *site) {
		for range 2 { // a body would be taken for the second answer
			got := s.ask("HEAD", "/head", nil)
			if got.status != 200 || got.length != 5 || got.header.Get("Content-Type") != "text/plain; charset=utf-8" || got.body != "" {
				t.Errorf("got %+v", got)
			}
		}
		if got := s.ask("GET", "/head", nil); got.body != "12345" || !got.reused {
			t.Errorf("got %+v, want the body on the same connection", got)
		}
	})
}

func TestAnswersThatHaveNoBodySayNothingOfItsLength(t *testing.T) {
	eachSite(t, func(t *testing.T, s *site) {
		for _, status := range []string{"204", "304"} {
			got := s.ask("GET", "/status/"+status, nil)
			if got.header.Get("Content-Length") != "" || len(got.coding) > 0 || got.header.Get("X-Kept") != "1" {
				t.Errorf("%s: got %+v", status, got)
			}
		}
	})
}

func TestAStreamArrivesPieceByPiece(t *testing.T) {
	eachSite(t, func(t *testing.T, s *site) {
		file := filepath.Join(t.TempDir(), "go-on")
		resp, _ := s.begin("GET", "/stream?file="+url.QueryEscape(file), nil)
		defer resp.Body.Close()
		one := make([]byte, 3)
		if _, err := io.ReadFull(resp.Body, one); err != nil || string(one) != "one" {
			t.Fatalf("got %q, %v", one, err)
		}
		if err := os.WriteFile(file, nil, 0o600); err != nil {
			t.Fatal(err)
		}
		rest, err := io.ReadAll(resp.Body)
		if err != nil || string(rest) != "two" || len(resp.TransferEncoding) != 1 {
			t.Errorf("got %q, %v, coding %v", rest, err, resp.TransferEncoding)
		}
	})
}

func TestAnAnswerThatBreaksOffIsSeenToBeBroken(t *testing.T) {
	eachSite(t, func(t *testing.T, s *site) {
		resp, _ := s.begin("GET", "/break", nil)
		body, err := io.ReadAll(resp.Body)
		_ = resp.Body.Close()
		if err == nil {
			t.Errorf("got %q and no error", body)
		}
		if got := s.ask("GET", "/echo", nil); got.status != 200 {
			t.Errorf("the next request got %+v", got)
		}
		s.expectError("in the middle")
	})
}

func TestAnAnswerThatIsCompleteStaysSoWhenItsHandlerFails(t *testing.T) {
	eachSite(t, func(t *testing.T, s *site) {
		for path, want := range map[string]string{"/late": strings.Repeat("x", 8<<20), "/late-close": "onetwo"} {
			if got := s.ask("GET", path, nil); got.status != 200 || got.body != want {
				t.Errorf("%s: got %d with %d bytes, want %d", path, got.status, len(got.body), len(want))
			}
			if got := s.ask("GET", "/echo", nil); got.status != 200 || !got.reused {
				t.Errorf("after %s got %+v, want an answer on the same connection", path, got)
			}
		}
		s.expectError("too late")
	})
}

func TestIdleConnectionsKeepNobodyWaiting(t *testing.T) {
	eachSite(t, func(t *testing.T, s *site) {
		idle, reader := s.dial()
		for range 2 {
			send(t, idle, "GET /echo HTTP/1.1\r\nHost: x\r\n\r\n")
			if got := readAnswer(t, reader); got.status != 200 {
				t.Errorf("by hand: got %+v", got)
			}
			if got := s.ask("GET", "/echo", nil); got.status != 200 {
				t.Errorf("beside it: got %+v", got)
			}
		}
	})
}

func TestRequestsThatArriveTogetherAreAllAnswered(t *testing.T) {
	eachSite(t, func(t *testing.T, s *site) {
		conn, reader := s.dial()
		send(t, conn, "POST /ignore HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\n\r\nabc"+
			"POST /echo HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n3;x=y\r\nabc\r\n2\r\nde\r\n0\r\nTrailer: 1\r\n\r\n"+
			"GET /echo?last HTTP/1.1\r\nHost: x\r\n\r\n")
		for _, want := range []string{"ignored", "POST  None None None;abcde", "GET last None None None;"} {
			if got := readAnswer(t, reader); got.body != want {
				t.Errorf("got %q, want %q", got.body, want)
			}
		}
	})
}

func TestTheConnectionIsClosedIfTheClientWantsIt(t *testing.T) {
	eachSite(t, func(t *testing.T, s *site) {
		for _, request := range []string{
			"GET /echo HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n",
			"GET /echo HTTP/1.0\r\n\r\n",
		} {
			conn, reader := s.dial()
			send(t, conn, request)
			if got := readAnswer(t, reader); got.status != 200 || got.body != "GET  None None None;" {
				t.Errorf("%q: got %+v", request, got)
			}
			if _, err := reader.ReadByte(); err != io.EOF {
				t.Errorf("%q: got %v, want the end of the connection", request, err)
			}
		}
	})
}

func TestWhatIsNotHTTPIsRefused(t *testing.T) {
	eachSite(t, func(t *testing.T, s *site) {
		for _, request := range []string{
			"nonsense\r\n\r\n",
			"GET / HTTP/1.1\r\nHost: x\r\nno colon\r\n\r\n",
			"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: x\r\n\r\n",
			"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n",
		} {
			conn, reader := s.dial()
			send(t, conn, request)
			if got := readAnswer(t, reader); got.status != 400 {
				t.Errorf("%q: got %d, want 400", request, got.status)
			}
		}
		if got := s.ask("GET", "/echo", nil); got.status != 200 {
			t.Errorf("the next request got %+v", got)
		}
	})
}

func TestAQueryForAWSGIApplicationMayHaveAnyLetter(t *testing.T) {
	s := startSite(t, v1alpha1.RuntimePython313, "app.application", httpSources[v1alpha1.RuntimePython313])
	conn, reader := s.dial()
	for _, query := range []string{"q=Voilà", "q=Å", "q=хлеб"} {
		send(t, conn, "GET /echo?"+query+" HTTP/1.1\r\nHost: x\r\n\r\n")
		// WSGI has each byte as a character of latin-1.
		if got := readAnswer(t, reader); got.status != 200 || latin1(got.body) != "GET "+query+" None None None;" {
			t.Errorf("%q: got %+v", query, got)
		}
	}
}

// latin1 are the bytes that a text has in latin-1.
func latin1(text string) string {
	var bytes []byte
	for _, r := range text {
		bytes = append(bytes, byte(r))
	}
	return string(bytes)
}

func TestAWSGIAnswerBeforeAnAwaitedBodyClosesTheConnection(t *testing.T) {
	for _, c := range []struct{ path, body, want string }{
		{"/ignore", "", "ignored"},
		{"/throw", "", "Internal Server Error\n"},
		{"/read-late", "body", "onebody"},
	} {
		t.Run(c.path, func(t *testing.T) {
			s := startSite(t, v1alpha1.RuntimePython313, "app.application", httpSources[v1alpha1.RuntimePython313])
			conn, reader := s.dial()
			send(t, conn, "POST "+c.path+" HTTP/1.1\r\nHost: x\r\nContent-Length: 4\r\nExpect: 100-continue\r\n\r\n")
			resp, err := http.ReadResponse(reader, nil)
			if err != nil {
				t.Fatal(err)
			}
			send(t, conn, c.body)
			body, err := io.ReadAll(resp.Body)
			if string(body) != c.want || !resp.Close {
				t.Errorf("got %d %q, %v, closes %v; want %q on a connection that closes", resp.StatusCode, body, err, resp.Close, c.want)
			}
		})
	}
}

func TestAWSGIAnswerIsWholeAlsoIfItsRequestIsNotRead(t *testing.T) {
	s := startSite(t, v1alpha1.RuntimePython313, "app.application", httpSources[v1alpha1.RuntimePython313])
	for _, header := range []string{"Expect: 100-continue", "Connection: close"} {
		conn, reader := s.dial()
		send(t, conn, "POST /late HTTP/1.1\r\nHost: x\r\n"+header+"\r\nContent-Length: 200000\r\n\r\n"+strings.Repeat("x", 200_000))
		if got := readAnswer(t, reader); len(got.body) != 8<<20 {
			t.Errorf("%s: got %d bytes, want %d", header, len(got.body), 8<<20)
		}
		if _, err := reader.ReadByte(); err != io.EOF {
			t.Errorf("%s: got %v, want the end of the connection", header, err)
		}
	}
}

func TestTwoRequestsRunAtATime(t *testing.T) {
	eachSite(t, func(t *testing.T, s *site) {
		for range 2 { // the second time on connections that idled
			var both sync.WaitGroup
			for range 2 {
				both.Go(func() {
					resp, err := s.client.Get("http://" + s.address + "/meet")
					if err != nil {
						t.Error(err)
						return
					}
					body, err := io.ReadAll(resp.Body)
					_ = resp.Body.Close()
					if err != nil || string(body) != "met" {
						t.Errorf("got %q, %v", body, err)
					}
				})
			}
			both.Wait()
		}
	}, "WINDLASS_CONCURRENCY=2")
}

func TestSIGTERMEndsAnIdleSiteAtOnce(t *testing.T) {
	for _, concurrency := range []string{"1", "4"} {
		eachSite(t, func(t *testing.T, s *site) {
			s.ask("GET", "/echo", nil) // leaves an idle connection
			s.terminate()
			s.expectExit(0)
		}, "WINDLASS_CONCURRENCY="+concurrency)
	}
}

func TestSIGTERMLetsTheRunningRequestFinish(t *testing.T) {
	for _, concurrency := range []string{"1", "4"} {
		eachSite(t, func(t *testing.T, s *site) {
			file := filepath.Join(t.TempDir(), "go-on")
			resp, _ := s.begin("GET", "/stream?file="+url.QueryEscape(file), nil)
			defer resp.Body.Close()
			s.terminate()
			if err := os.WriteFile(file, nil, 0o600); err != nil {
				t.Fatal(err)
			}
			if body, err := io.ReadAll(resp.Body); err != nil || string(body) != "onetwo" {
				t.Errorf("got %q, %v", body, err)
			}
			s.expectExit(0)
		}, "WINDLASS_CONCURRENCY="+concurrency)
	}
}

func TestWSGIApplicationsThatMisbehave(t *testing.T) {
	for _, c := range []struct {
		handler string
		status  int
		body    string
		breaks  bool
		says    string
	}{
		{"app.short", 200, "", true, "less than the 5 of its Content-Length"},
		{"app.long", 200, "", true, "more than the 5 bytes of its Content-Length"},
		{"app.lazy", 200, "written yielded", false, ""},
		{"app.silent", 500, "Internal Server Error\n", false, "start_response"},
		{"app.split", 500, "Internal Server Error\n", false, "X-Evil"},
		{"app.text", 500, "Internal Server Error\n", false, "must be bytes, not str"},
		{"app.late_text", 200, "", true, "must be bytes, not str"},
		{"app.foreign", 500, "Internal Server Error\n", false, "latin-1"},
		{"app.excess", 500, "Internal Server Error\n", false, "more than the 1 bytes of its Content-Length"},
		{"app.nothing", 500, "Internal Server Error\n", false, "less than the 5 of its Content-Length"},
		{"app.lengthy", 500, "Internal Server Error\n", false, "invalid literal"},
		{"app.replaced", 503, "busy", false, ""},
	} {
		t.Run(c.handler, func(t *testing.T) {
			s := startSite(t, v1alpha1.RuntimePython313, c.handler, httpSources[v1alpha1.RuntimePython313])
			resp, _ := s.begin("GET", "/", nil)
			body, err := io.ReadAll(resp.Body)
			_ = resp.Body.Close()
			if resp.StatusCode != c.status || (err != nil) != c.breaks || (!c.breaks && string(body) != c.body) {
				t.Errorf("got %d %q, %v", resp.StatusCode, body, err)
			}
			s.terminate()
			s.expectExit(0)
			s.expectError(c.says)
		})
	}
}

func TestAWSGIApplicationEndsTheWorkersThatItForks(t *testing.T) {
	for _, concurrency := range []string{"1", "2"} {
		t.Run("concurrency "+concurrency, func(t *testing.T) {
			s := startSite(t, v1alpha1.RuntimePython313, "app.forks", httpSources[v1alpha1.RuntimePython313], "WINDLASS_CONCURRENCY="+concurrency)
			for range 2 {
				if got := s.ask("GET", "/", nil); got.status != 200 || got.body != "-15" {
					t.Errorf("got %+v", got)
				}
			}
			s.terminate()
			s.expectExit(0)
		})
	}
}

func TestASiteThatCannotStartSaysWhy(t *testing.T) {
	taken := listenOn(t, "127.0.0.1:0")
	defer taken.Close()
	_, port, _ := net.SplitHostPort(taken.Addr().String())
	for _, c := range []struct{ name, handler, port, says string }{
		{"no port", "app.application", "", "PORT is ''"},
		{"taken port", "app.application", port, fmt.Sprintf("cannot listen on 127.0.0.1:%s", port)},
		{"missing handler", "app.gone", "1", "Runtime.HandlerNotFound"},
	} {
		t.Run(c.name, func(t *testing.T) {
			eachLanguage(t, func(t *testing.T, runtime v1alpha1.RuntimeName) {
				s := startShim(t, runtime, v1alpha1.ProtocolHTTP, c.handler, httpSources[runtime], "PORT="+c.port)
				s.expectExit(1)
				s.expectError(c.says)
			})
		})
	}
}
