package loadgen_test

import (
	"context"
	"crypto/rand"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/windlass-dev/windlass/internal/loadgen"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// serve starts a gateway and makes a client of it.
func serve(t *testing.T, handle http.HandlerFunc) (url string, client loadgen.Client) {
	t.Helper()
	server := httptest.NewServer(handle)
	t.Cleanup(server.Close)
	transport := loadgen.NewTransport(4)
	t.Cleanup(transport.CloseIdleConnections)
	return server.URL, loadgen.Client{Transport: transport, Keep: 1 << 20}
}

func TestACallHasWhatTheAnswerSays(t *testing.T) {
	var got *http.Request
	url, client := serve(t, func(w http.ResponseWriter, r *http.Request) {
		got = r.Clone(t.Context())
		body, _ := io.ReadAll(r.Body)
		w.Header().Set("Location", "/elsewhere")
		w.WriteHeader(http.StatusFound)
		_, _ = w.Write(append(body, "!"...))
	})
	call := client.Do(t.Context(), loadgen.Request{
		Method: http.MethodPut, URL: url + "/a?b=c", Header: http.Header{"X-Test": {"yes"}}, Body: []byte("hello"),
	})
	if call.Outcome != loadgen.Answered || call.Status != http.StatusFound || string(call.Body) != "hello!" || call.Header.Get("Location") != "/elsewhere" {
		t.Errorf("the call is %+v", call)
	}
	if call.Sent != 1 || call.Reused || call.Took() <= 0 {
		t.Errorf("sent %d times, on a used connection: %v, took %v", call.Sent, call.Reused, call.Took())
	}
	if got.Method != http.MethodPut || got.RequestURI != "/a?b=c" || got.Header.Get("X-Test") != "yes" || got.ContentLength != 5 {
		t.Errorf("the request was %s %s, %v, %d bytes", got.Method, got.RequestURI, got.Header, got.ContentLength)
	}
	client.Keep = 2
	if call := client.Do(t.Context(), loadgen.Request{Method: http.MethodPut, URL: url, Body: []byte("hello")}); string(call.Body) != "he" || !call.Reused {
		t.Errorf("of the second answer %q is kept, on a used connection: %v", call.Body, call.Reused)
	}
}

// Connections break in every way in which net/http would repeat a request that it may
// repeat.
func TestNoCallIsMadeTwiceUnlessItMayBe(t *testing.T) {
	ways := map[string]func(w http.ResponseWriter){
		"before the answer": func(http.ResponseWriter) { panic(http.ErrAbortHandler) },
		"in the middle of the answer": func(w http.ResponseWriter) {
			w.Header().Set("Content-Length", "1000")
			_, _ = io.WriteString(w, "not all")
			panic(http.ErrAbortHandler)
		},
	}
	for name, breakOff := range ways {
		for _, method := range []string{http.MethodGet, http.MethodPost} {
			t.Run(method+" "+name, func(t *testing.T) {
				var hits atomic.Int64
				url, client := serve(t, func(w http.ResponseWriter, r *http.Request) {
					// The connection of the first call is used again.
					if hits.Add(1) == 2 {
						_, _ = io.Copy(io.Discard, r.Body)
						breakOff(w)
					}
				})
				request := loadgen.Request{Method: method, URL: url}
				first, second := client.Do(t.Context(), request), client.Do(t.Context(), request)
				if hits.Load() != 2 || first.Outcome != loadgen.Answered || second.Outcome != loadgen.Broken || second.Sent != 1 {
					t.Errorf("%d requests for 2 calls: %+v, %+v", hits.Load(), first, second)
				}
			})
		}
	}
	t.Run("it may be", func(t *testing.T) {
		var hits atomic.Int64
		url, client := serve(t, func(http.ResponseWriter, *http.Request) {
			if hits.Add(1) == 2 {
				panic(http.ErrAbortHandler)
			}
		})
		request := loadgen.Request{Method: http.MethodGet, URL: url, Resend: true}
		client.Do(t.Context(), request)
		if call := client.Do(t.Context(), request); call.Outcome != loadgen.Answered || call.Sent != 2 || hits.Load() != 3 {
			t.Errorf("%d requests: %+v", hits.Load(), call)
		}
	})
}

func TestACallWithoutAnAnswerSaysWhy(t *testing.T) {
	over := make(chan struct{})
	url, client := serve(t, func(http.ResponseWriter, *http.Request) { <-over })
	defer close(over)
	ended, end := context.WithCancel(t.Context())
	end()
	for name, c := range map[string]struct {
		ctx     context.Context
		timeout time.Duration
		url     string
		outcome loadgen.Outcome
		cause   string
	}{
		"its time is over":    {t.Context(), 10 * time.Millisecond, url, loadgen.TimedOut, "timed out"},
		"its context ended":   {ended, time.Minute, url, loadgen.CutOff, "context canceled"},
		"nobody listens":      {t.Context(), time.Minute, "http://127.0.0.1:1", loadgen.Broken, "connection refused"},
		"its address is none": {t.Context(), time.Minute, "http://%zz", loadgen.NotSent, `invalid URL escape "%zz"`},
	} {
		t.Run(name, func(t *testing.T) {
			client := client
			client.Timeout = c.timeout
			call := client.Do(c.ctx, loadgen.Request{Method: http.MethodPost, URL: c.url})
			if call.Outcome != c.outcome || call.Err == nil || call.Cause() != c.cause || call.Ended.Before(call.Began) {
				t.Errorf("the call is %+v, for %q", call, call.Cause())
			}
		})
	}
}

func TestAStreamedBodyArrivesWholeAndWithoutALength(t *testing.T) {
	sent := make([]byte, 100_000)
	_, _ = rand.Read(sent)
	var got []byte
	var length int64
	url, client := serve(t, func(_ http.ResponseWriter, r *http.Request) {
		got, _ = io.ReadAll(r.Body)
		length = r.ContentLength
	})
	call := client.Do(t.Context(), loadgen.Request{Method: http.MethodPost, URL: url, Body: sent, Streamed: true})
	if call.Outcome != loadgen.Answered || !slices.Equal(got, sent) || length != -1 {
		t.Errorf("%v: %d of %d bytes came, with the length %d", call.Err, len(got), len(sent), length)
	}
}

func TestAStreamedBodyEndsWithItsCall(t *testing.T) {
	ctx, cancel := context.WithCancelCause(t.Context())
	defer cancel(nil)
	url, client := serve(t, func(w http.ResponseWriter, r *http.Request) {
		cancel(errors.New("the caller hangs up"))
		_, _ = io.Copy(io.Discard, r.Body)
	})
	call := client.Do(ctx, loadgen.Request{Method: http.MethodPost, URL: url, Body: make([]byte, 100<<20), Streamed: true})
	if call.Outcome != loadgen.CutOff {
		t.Errorf("the call is %+v", call)
	}
}
