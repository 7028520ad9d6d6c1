package lambda

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/windlass-dev/windlass/pkg/podagent/adapter"
)

// small runs a test in a bubble with room for two events, and for two answers, of 1 MiB.
func small(t *testing.T, concurrency int, f func(s *harness)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		s := newHarnessOf(t, New(Config{Namespace: "shop", Function: "hello", Concurrency: concurrency, BufferBytes: 4 << 20}))
		defer func() { s.end() }()
		f(s)
		synctest.Wait()
		s.wantEmptyRooms()
	})
}

// wantEmptyRooms says that nothing is held of what has ended.
func (s *harness) wantEmptyRooms() {
	s.Helper()
	for name, r := range map[string]*bodyBudget{"events": s.a.events, "answers": s.a.server.answers} {
		if !r.free.TryAcquire(2 << 20) {
			s.Errorf("room for %s is taken though no call is left", name)
		}
	}
}

// counted counts what is read of a body.
type counted struct {
	io.Reader
	total *atomic.Int64
}

func (c counted) Read(p []byte) (int, error) {
	n, err := c.Reader.Read(p)
	c.total.Add(int64(n))
	return n, err
}

var mebibyte = strings.Repeat("x", 1<<20)

func TestL7EventsWaitForRoomInOrder(t *testing.T) {
	for name, length := range map[string]int64{"of known length": 1 << 20, "of unknown length": -1} {
		t.Run(name, func(t *testing.T) {
			small(t, 8, func(s *harness) {
				var read atomic.Int64
				calls := map[string]*pending{}
				for i := range 8 {
					id := fmt.Sprint("call", i)
					calls[id] = s.invoke(id, mebibyte, func(c *adapter.Call) {
						c.Body, c.ContentLength = counted{c.Body, &read}, length
					})
					synctest.Wait() // so that the order is known
				}
				room := int64(2 << 20)
				if got := read.Load(); got > room || got < 1<<20 {
					t.Errorf("%d bytes of events are held, want up to %d", got, room)
				}
				for i := range 8 {
					id := s.next().header.Get("Lambda-Runtime-Aws-Request-Id")
					if want := fmt.Sprint("call", i); id != want {
						t.Errorf("the event of %s was handed out, want %s", id, want)
					}
					synctest.Wait()
					if got, most := read.Load(), int64(i+1)<<20+room; got > most {
						t.Errorf("%d bytes were read after %d events were handed out, want at most %d", got, i+1, most)
					}
					// Of what was handed out nothing is held, however long it runs.
				}
				for id, p := range calls {
					s.want(s.post(id, "response", "1"), 202, "OK")
					s.wantAnswer(p, 200, "1")
				}
			})
		})
	}
}

// Neither the caller nor the function is to blame, so the call goes to another instance.
func TestL7AnEventThatFindsNoRoomInTimeDidNotRun(t *testing.T) {
	small(t, 3, func(s *harness) {
		first, second := s.invoke("a", mebibyte), s.invoke("b", mebibyte)
		synctest.Wait()
		late := s.invoke("c", mebibyte, func(c *adapter.Call) { c.Deadline = time.Now().Add(time.Second) })
		err := late.result()
		s.wantError(err, adapter.ErrNotTaken)
		if !strings.Contains(err.Error(), errNoRoom.Error()) {
			t.Errorf("%q does not say what it waited for", err)
		}
		// What it waited for is there for the next.
		first.cancel()
		s.wantError(first.result(), adapter.ErrNotStarted)
		third := s.invoke("d", mebibyte)
		synctest.Wait()
		for id, p := range map[string]*pending{"b": second, "d": third} {
			s.next()
			defer func() { s.post(id, "response", "1"); s.wantAnswer(p, 200, "1") }()
		}
	})
}

func TestL7WhatNeverFitsIsRefused(t *testing.T) {
	const remedy = "bodies of at most 2097152 bytes: raise agent.resources.limits.memory"
	for name, length := range map[string]int64{"of known length": 2<<20 + 1, "of unknown length": -1} {
		t.Run("an event "+name, func(t *testing.T) {
			small(t, 1, func(s *harness) {
				p := s.invoke("a", mebibyte+mebibyte+"x", func(c *adapter.Call) { c.ContentLength = length })
				err := p.result()
				s.wantError(err, adapter.ErrBodyTooLarge)
				if !strings.Contains(err.Error(), remedy) {
					t.Errorf("%q does not say what to do", err)
				}
			})
		})
	}
	t.Run("an answer", func(t *testing.T) {
		small(t, 1, func(s *harness) {
			p := s.invoke("a", "1")
			s.next()
			s.want(s.post("a", "response", mebibyte+mebibyte+"x"), 413, remedy)
			if err := p.result(); err != nil || p.w.head.FunctionError != responseTooLarge || !strings.Contains(p.w.body.String(), remedy) {
				t.Errorf("got %+v %q, %v", p.w.head, p.w.body.String(), err)
			}
		})
	})
	t.Run("what just fits is not", func(t *testing.T) {
		small(t, 1, func(s *harness) {
			p := s.invoke("a", mebibyte+mebibyte, func(c *adapter.Call) { c.ContentLength = -1 })
			s.next()
			s.want(s.post("a", "response", mebibyte+mebibyte), 202, "OK")
			s.wantAnswer(p, 200, mebibyte+mebibyte)
		})
	})
}

// upload is an answer of 1 MiB that a runtime client sends as fast as it is read.
func (s *harness) upload(id string, sent *atomic.Int64) (status chan int) {
	status = make(chan int, 1)
	conn, err := s.l.dial(s.Context())
	if err != nil {
		s.Fatal(err)
	}
	go func() {
		defer conn.Close()
		status <- answerOver(conn, id, sent)
	}()
	return status
}

func answerOver(conn net.Conn, id string, sent *atomic.Int64) int {
	req, _ := http.NewRequest(http.MethodPost, "http://127.0.0.1:9001"+base+"/invocation/"+id+"/response", strings.NewReader(mebibyte))
	if err := req.Write(countedWriter{conn, sent}); err != nil {
		return 0
	}
	return replyOf(conn)
}

type countedWriter struct {
	io.Writer
	total *atomic.Int64
}

func (c countedWriter) Write(p []byte) (int, error) {
	n, err := c.Writer.Write(p)
	c.total.Add(int64(n))
	return n, err
}

func TestL7AnswersAreReadAsRoomComesFree(t *testing.T) {
	small(t, 8, func(s *harness) {
		taken := make(chan struct{}) // a gateway takes an answer
		var calls []*pending
		for i := range 8 {
			p := s.invoke(fmt.Sprint("call", i), "1")
			p.w.onWrite = func() error { <-taken; return nil }
			calls = append(calls, p)
			s.next()
		}
		var sent atomic.Int64
		var statuses []chan int
		for i := range 8 {
			statuses = append(statuses, s.upload(fmt.Sprint("call", i), &sent))
			synctest.Wait()
		}
		const room, perConnection = 2 << 20, 8 << 10 // the head, and what the server reads ahead
		if got := sent.Load(); got < room || got > room+8*perConnection {
			t.Errorf("%d bytes of answers were read, want %d", got, room)
		}
		for i := range 8 {
			taken <- struct{}{}
			synctest.Wait()
			if got, most := sent.Load(), int64(min(i+3, 8))<<20+8*perConnection; got > most {
				t.Errorf("%d bytes of answers were read after %d were passed on, want at most %d", got, i+1, most)
			}
		}
		for i, p := range calls {
			if got := <-statuses[i]; got != http.StatusAccepted {
				t.Errorf("answer %d: status %d", i, got)
			}
			s.wantAnswer(p, 200, mebibyte)
		}
	})
}

// A runtime client that does one call after the other, in a function of a higher
// concurrency, asks for the next event when it has answered: answers must not wait for
// events.
func TestL7AnAnswerNeverWaitsForEvents(t *testing.T) {
	small(t, 4, func(s *harness) {
		running := s.invoke("a", "1")
		s.next()
		waiting := map[string]*pending{}
		for _, id := range []string{"b", "c", "d"} {
			waiting[id] = s.invoke(id, mebibyte)
		}
		synctest.Wait()
		s.want(s.post("a", "response", mebibyte), 202, "OK")
		s.wantAnswer(running, 200, mebibyte)
		for range 3 {
			id := s.next().header.Get("Lambda-Runtime-Aws-Request-Id")
			s.want(s.post(id, "response", "1"), 202, "OK")
			s.wantAnswer(waiting[id], 200, "1")
		}
	})
}

func TestL7RoomComesBackHoweverACallEnds(t *testing.T) {
	for name, end := range map[string]func(s *harness){
		"given up in the queue": func(s *harness) {
			p := s.invoke("a", mebibyte)
			synctest.Wait()
			p.cancel()
			s.wantError(p.result(), adapter.ErrNotStarted)
		},
		"its event cannot be written": func(s *harness) {
			s.park().failWrites(9)
			s.wantError(s.invoke("a", mebibyte).result(), adapter.ErrFunctionLost)
		},
		"given up while its event could not be written": func(s *harness) {
			near, far := net.Pipe()
			s.l.conns <- far
			_, _ = io.WriteString(near, "GET "+base+"/invocation/next HTTP/1.1\r\nHost: 127.0.0.1:9001\r\n\r\n")
			p := s.invoke("a", mebibyte)
			synctest.Wait()
			p.cancel()
			s.wantError(p.result(), adapter.ErrFunctionLost)
			near.Close()
		},
		"given up while it runs, and answered": func(s *harness) {
			p := s.invoke("a", mebibyte)
			s.next()
			p.cancel()
			s.wantError(p.result(), adapter.ErrFunctionLost)
			s.want(s.post("a", "response", mebibyte), 202, "OK")
		},
		"its answer is cut": func(s *harness) {
			p := s.invoke("a", "1")
			s.next()
			conn, err := s.l.dial(s.Context())
			if err != nil {
				s.Fatal(err)
			}
			_, _ = fmt.Fprintf(conn, "POST %s/invocation/a/response HTTP/1.1\r\nHost: 127.0.0.1:9001\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n", base)
			conn.Close()
			s.wantError(p.result(), adapter.ErrFunctionLost)
		},
		"given up in the middle of its answer": func(s *harness) {
			p := s.invoke("a", "1")
			s.next()
			conn, err := s.l.dial(s.Context())
			if err != nil {
				s.Fatal(err)
			}
			defer conn.Close()
			_, _ = fmt.Fprintf(conn, "POST %s/invocation/a/response HTTP/1.1\r\nHost: 127.0.0.1:9001\r\nContent-Length: 4\r\n\r\nab", base)
			p.cancel()
			s.wantError(p.result(), adapter.ErrFunctionLost)
			_, _ = io.WriteString(conn, "cd")
			if got := replyOf(conn); got != http.StatusAccepted {
				s.Errorf("status %d", got)
			}
		},
		"never answered": func(s *harness) {
			p := s.invoke("a", mebibyte)
			s.next()
			s.park()
			s.wantError(p.result(), adapter.ErrBadAnswer)
		},
	} {
		t.Run(name, func(t *testing.T) { small(t, 1, end) })
	}
}

func TestL7TheAgentsMemoryLimitSizesTheRoom(t *testing.T) {
	if got := BufferBytes(256 << 20); got != 128<<20 {
		t.Errorf("%d bytes of 256 MiB are for bodies", got)
	}
	if a := NewSpare(4 << 20); a.events.largest != 2<<20 || a.server.answers.largest != 2<<20 {
		t.Errorf("a spare instance takes events of %d and answers of %d bytes", a.events.largest, a.server.answers.largest)
	}
}
