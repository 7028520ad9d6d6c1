package lambda

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/windlass-dev/windlass/pkg/podagent/adapter"
)

// inBubble runs a test with a function of the given concurrency in a bubble.
func inBubble(t *testing.T, concurrency int, f func(s *harness)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		s := newHarness(t, concurrency)
		defer func() { s.end() }()
		f(s)
	})
}

func TestCallGoesToTheRuntimeClientAndBack(t *testing.T) {
	inBubble(t, 1, func(s *harness) {
		for i := range 3 {
			id := fmt.Sprintf("%032d", i)
			p := s.invoke(id, `{"n":1}`)
			event := s.next()
			s.want(event, 200, `{"n":1}`)
			for name, want := range map[string]string{
				"Lambda-Runtime-Aws-Request-Id":       id,
				"Lambda-Runtime-Deadline-Ms":          fmt.Sprint(time.Now().Add(time.Minute).UnixMilli()),
				"Lambda-Runtime-Invoked-Function-Arn": "arn:aws:lambda:us-east-1:000000000000:function:shop-hello",
				"Content-Type":                        "application/json",
			} {
				if got := event.header.Get(name); got != want {
					t.Errorf("%s is %q, want %q", name, got, want)
				}
			}
			for name, values := range event.header {
				if strings.HasPrefix(name, "Lambda-") && values[0] == "" {
					t.Errorf("%s is empty", name)
				}
			}
			s.want(s.post(id, "response", `{"m":2}`), 202, `{"status":"OK"}`)
			s.wantAnswer(p, 200, `{"m":2}`)
			if got := p.w.head.Header.Get("Content-Type"); got != "application/json" {
				t.Errorf("Content-Type %q", got)
			}
			s.want(s.post(id, "response", `{"m":3}`), 403, "InvalidStateTransition")
		}
	})
}

func TestRuntimeClientMayWaitFirst(t *testing.T) {
	inBubble(t, 1, func(s *harness) {
		events := make(chan reply)
		go func() { events <- s.next() }()
		synctest.Wait()
		time.Sleep(24 * time.Hour)
		p := s.invoke("a", "1")
		s.want(<-events, 200, "1")
		s.post("a", "response", "2")
		s.wantAnswer(p, 200, "2")
	})
}

func TestReportedErrorIsAFunctionError(t *testing.T) {
	for reported, want := range map[string]string{
		"Function.Oops": "Function.Oops", "Runtime.ExitError": "Runtime.ExitError",
		"ValueError": "ValueError", "": "Runtime.Unknown", "not a name": "Runtime.Unknown",
	} {
		t.Run(reported, func(t *testing.T) {
			inBubble(t, 1, func(s *harness) {
				p := s.invoke("a", "1")
				s.next()
				s.want(s.post("a", "error", `{"errorMessage":"no","errorType":"ValueError"}`, headErrorType, reported), 202, "OK")
				s.wantAnswer(p, 500, `{"errorMessage":"no","errorType":"ValueError"}`)
				if p.w.head.FunctionError != want {
					t.Errorf("function error %q, want %q", p.w.head.FunctionError, want)
				}
			})
		})
	}
}

func TestWaitReady(t *testing.T) {
	t.Run("returns at the first request for an event", func(t *testing.T) {
		inBubble(t, 1, func(s *harness) {
			ready := make(chan error, 1)
			go func() { ready <- s.a.WaitReady(s.Context()) }()
			synctest.Wait()
			select {
			case err := <-ready:
				t.Fatalf("ready too early: %v", err)
			default:
			}
			ctx, leave := context.WithCancel(s.Context())
			defer leave()
			go func() { _, _ = s.do(ctx, http.MethodGet, base+"/invocation/next", nil, nil) }()
			if err := <-ready; err != nil {
				t.Error(err)
			}
		})
	})
	t.Run("gives up with ctx and says what is missing", func(t *testing.T) {
		inBubble(t, 1, func(s *harness) {
			ctx, cancel := context.WithTimeout(s.Context(), time.Second)
			defer cancel()
			err := s.a.WaitReady(ctx)
			if !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), "AWS_LAMBDA_RUNTIME_API") {
				t.Errorf("got %v", err)
			}
		})
	})
	t.Run("returns the error that the runtime client reports", func(t *testing.T) {
		inBubble(t, 1, func(s *harness) {
			p := s.invoke("a", "1")
			synctest.Wait()
			post := func() reply {
				got, err := s.do(s.Context(), http.MethodPost, base+"/init/error", http.Header{headErrorType: {"Runtime.ImportModuleError"}},
					strings.NewReader(`{"errorMessage":"no module app","errorType":"Runtime.ImportModuleError","stackTrace":[]}`))
				if err != nil {
					t.Fatal(err)
				}
				return got
			}
			s.want(post(), 202, "OK")
			err := s.a.WaitReady(s.Context())
			if err == nil || !strings.Contains(err.Error(), "Runtime.ImportModuleError: no module app") {
				t.Errorf("got %v", err)
			}
			s.wantError(p.result(), adapter.ErrNotStarted)
			s.wantError(s.invoke("b", "1").result(), adapter.ErrNotStarted)
			s.want(post(), 403, "InvalidStateTransition")
		})
	})
}

func TestContextThatEnds(t *testing.T) {
	t.Run("before the event is asked for: not started, and never handed out", func(t *testing.T) {
		inBubble(t, 1, func(s *harness) {
			p := s.invoke("a", "1")
			s.wantError(p.result(), adapter.ErrNotStarted) // after its deadline
			q := s.invoke("b", "2")
			s.want(s.next(), 200, "2")
			s.post("b", "response", "2")
			s.wantAnswer(q, 200, "2")
		})
	})
	t.Run("by its deadline: timed out, and a late answer is refused", func(t *testing.T) {
		inBubble(t, 1, func(s *harness) {
			p := s.invoke("a", "1")
			s.next()
			s.wantError(p.result(), adapter.ErrTimedOut)
			s.want(s.post("a", "response", "2"), 400, "InvalidRequestID")
		})
	})
	t.Run("otherwise: lost, and a late answer is thrown away", func(t *testing.T) {
		inBubble(t, 1, func(s *harness) {
			p := s.invoke("a", "1")
			s.next()
			p.cancel()
			err := p.result()
			s.wantError(err, adapter.ErrFunctionLost)
			if !errors.Is(err, context.Canceled) {
				t.Errorf("error %v does not wrap the context's", err)
			}
			s.want(s.post("a", "response", "2"), 202, "OK")
			q := s.invoke("b", "3")
			s.want(s.next(), 200, "3")
			s.post("b", "response", "4")
			s.wantAnswer(q, 200, "4")
		})
	})
	t.Run("with its server", func(t *testing.T) {
		inBubble(t, 2, func(s *harness) {
			p := s.invoke("a", "1")
			s.next()
			q := s.invoke("b", "1")
			synctest.Wait()
			s.end()
			s.wantError(p.result(), adapter.ErrFunctionLost)
			s.wantError(q.result(), adapter.ErrNotStarted)
		})
	})
}

func TestServerThatEndsGivesNoEvent(t *testing.T) {
	inBubble(t, 1, func(s *harness) {
		conn := s.park()
		s.end()
		if n := conn.written(); n != 0 {
			t.Errorf("%d bytes were written", n)
		}
	})
}

func TestNextInsteadOfAnAnswerIsABadAnswer(t *testing.T) {
	inBubble(t, 1, func(s *harness) {
		p := s.invoke("a", "1")
		s.next()
		ctx, leave := context.WithCancel(s.Context())
		defer leave()
		go func() { _, _ = s.do(ctx, http.MethodGet, base+"/invocation/next", nil, nil) }()
		s.wantError(p.result(), adapter.ErrBadAnswer)
	})
}

func TestRuntimeClientThatLeavesDoesNotTakeACallWithIt(t *testing.T) {
	inBubble(t, 1, func(s *harness) {
		ctx, leave := context.WithCancel(s.Context())
		left := make(chan struct{})
		go func() {
			defer close(left)
			_, _ = s.do(ctx, http.MethodGet, base+"/invocation/next", nil, nil)
		}()
		synctest.Wait()
		leave()
		<-left
		p := s.invoke("a", "1") // perhaps before the server has noticed
		s.want(s.next(), 200, "1")
		s.post("a", "response", "2")
		s.wantAnswer(p, 200, "2")
	})
}

func TestEventOfWhichNothingCouldBeSentGoesToTheNextRequest(t *testing.T) {
	inBubble(t, 1, func(s *harness) {
		conn := s.park()
		conn.failWrites(0)
		p := s.invoke("a", "1")
		synctest.Wait()
		s.want(s.next(), 200, "1")
		s.post("a", "response", "2")
		s.wantAnswer(p, 200, "2")
	})
}

func TestEventOfWhichAPartWasSentIsLost(t *testing.T) {
	inBubble(t, 1, func(s *harness) {
		conn := s.park()
		conn.failWrites(10)
		s.wantError(s.invoke("a", "1").result(), adapter.ErrFunctionLost)
	})
}

func TestCallsUpToTheConcurrencyAreOutAtATime(t *testing.T) {
	inBubble(t, 2, func(s *harness) {
		p, q := s.invoke("a", "1"), s.invoke("b", "2")
		s.next()
		s.next()
		s.wantError(s.invoke("c", "3").result(), adapter.ErrNotStarted)
		s.post("b", "response", "b")
		s.post("a", "response", "a")
		s.wantAnswer(p, 200, "a")
		s.wantAnswer(q, 200, "b")
	})
}

func TestSizes(t *testing.T) {
	t.Run("A5: a body above 6 MiB is refused and not handed out", func(t *testing.T) {
		for _, length := range []int64{maxEvent + 1, -1} {
			inBubble(t, 1, func(s *harness) {
				p := s.invoke("a", strings.Repeat("x", maxEvent+1), func(c *adapter.Call) { c.ContentLength = length })
				s.wantError(p.result(), adapter.ErrBodyTooLarge)
			})
		}
	})
	t.Run("the largest event and answer pass", func(t *testing.T) {
		inBubble(t, 1, func(s *harness) {
			p := s.invoke("a", strings.Repeat("x", maxEvent))
			if n := len(s.next().body); n != maxEvent {
				t.Errorf("event of %d bytes", n)
			}
			s.want(s.post("a", "response", strings.Repeat("y", maxAnswer)), 202, "OK")
			if err := p.result(); err != nil || p.w.body.Len() != maxAnswer {
				t.Errorf("answer of %d bytes, %v", p.w.body.Len(), err)
			}
		})
	})
	t.Run("a larger answer becomes an error", func(t *testing.T) {
		inBubble(t, 1, func(s *harness) {
			p := s.invoke("a", "1")
			s.next()
			s.want(s.post("a", "response", strings.Repeat("y", maxAnswer+1)), 413, "RequestEntityTooLarge")
			if err := p.result(); err != nil || p.w.head.Status != 500 || p.w.head.FunctionError != responseTooLarge {
				t.Errorf("got %+v, %v", p.w.head, err)
			}
		})
	})
}

func TestBodyThatBreaksOffIsNotHandedOut(t *testing.T) {
	for name, body := range map[string]io.Reader{
		"with an error": io.MultiReader(strings.NewReader("12"), &failing{}),
		"too early":     strings.NewReader("12"),
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, 1, func(s *harness) {
				p := s.invoke("a", "1234", func(c *adapter.Call) { c.Body = body })
				s.wantError(p.result(), adapter.ErrNotStarted)
			})
		})
	}
}

type failing struct{}

func (*failing) Read([]byte) (int, error) { return 0, errors.New("client went away") }

func TestRequestsThatTheProtocolDoesNotKnow(t *testing.T) {
	inBubble(t, 1, func(s *harness) {
		s.want(s.post("nobody", "response", "1"), 400, `"errorType":"InvalidRequestID"`)
		s.want(s.post("nobody", "error", "1"), 400, `"errorType":"InvalidRequestID"`)
		p := s.invoke("a", "1")
		s.next()
		s.want(s.post("a", "response", "1", headMode, "trickling"), 400, `"errorType":"InvalidFunctionResponseMode"`)
		s.want(s.post("a", "response", "1"), 202, "OK")
		s.wantAnswer(p, 200, "1")
		for path, status := range map[string]int{"/ping": 200, base + "/invocation/a/response": 405, "/2018-06-01/else": 404} {
			got, err := s.do(s.Context(), http.MethodGet, path, nil, nil)
			if err != nil || got.status != status {
				t.Errorf("GET %s: %+v, %v, want %d", path, got, err, status)
			}
		}
	})
}

func TestConfigIsCheckedFieldByField(t *testing.T) {
	if err := (Config{Namespace: "n", Function: "f", Concurrency: 1}).Validate(); err != nil {
		t.Error(err)
	}
	for field, c := range map[string]Config{
		"namespace":   {Function: "f", Concurrency: 1},
		"function":    {Namespace: "n", Concurrency: 1},
		"concurrency": {Namespace: "n", Function: "f"},
	} {
		if err := c.Validate(); err == nil || !strings.Contains(err.Error(), field) {
			t.Errorf("%+v: error %v does not name %s", c, err, field)
		}
	}
}
