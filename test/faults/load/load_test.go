package load_test

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"time"

	"github.com/windlass-dev/windlass/pkg/invoke"
	"github.com/windlass-dev/windlass/test/faults/load"
	"github.com/windlass-dev/windlass/test/faults/verdict"
)

// at makes a load of calls to a gateway that the handler plays.
func at(t *testing.T, gateway http.HandlerFunc) load.Config {
	server := httptest.NewServer(gateway)
	t.Cleanup(server.Close)
	return load.Config{
		Targets: []load.Target{{Name: "g", URL: server.URL}}, Patience: time.Minute, Name: "t", Seed: 1,
		Next: func(*rand.Rand) load.Request { return load.Request{Function: "ns/f", Query: "ms=1", Body: 100} },
	}
}

// echo answers as the lab's function does.
func echo(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	sum := sha256.Sum256(body)
	w.Header().Set(invoke.HeaderExecuted, "yes")
	w.Header().Set(invoke.HeaderInvocationID, "i1")
	fmt.Fprintf(w, "%s %d %s\n", r.Header.Get("Lab-Nonce"), len(body), hex.EncodeToString(sum[:]))
}

func TestASuccessIsRecordedAsSuch(t *testing.T) {
	var asked atomic.Pointer[http.Request]
	config := at(t, func(w http.ResponseWriter, r *http.Request) { asked.Store(r.Clone(r.Context())); echo(w, r) })
	call := load.Some(t.Context(), config, 1)[0]
	if !call.Succeeded() || !call.Whole || call.Echo != call.Nonce || call.Invocation != "i1" || call.Executed != verdict.Yes || call.Gateway != "g" || call.Ended <= call.Began {
		t.Errorf("recorded %+v", call)
	}
	if r := asked.Load(); r.Method != http.MethodPost || r.URL.Path != "/function/ns/f" || r.URL.RawQuery != "ms=1" {
		t.Errorf("asked for %s %s", r.Method, r.URL)
	}
}

func TestAnAnswerThatDoesNotFitTheRequestIsNotWhole(t *testing.T) {
	config := at(t, func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprintf(w, "%s 100 %x\n", r.Header.Get("Lab-Nonce"), sha256.Sum256(nil))
	})
	if call := load.Some(t.Context(), config, 1)[0]; !call.Succeeded() || call.Whole {
		t.Errorf("recorded %+v", call)
	}
}

func TestAProblemIsRecordedWithItsReason(t *testing.T) {
	config := at(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set(invoke.HeaderExecuted, "no")
		w.WriteHeader(http.StatusServiceUnavailable)
		_, _ = io.WriteString(w, `{"reason":"NoCapacity"}`)
	})
	call := load.Some(t.Context(), config, 1)[0]
	if call.Succeeded() || call.Outcome != verdict.Answered || call.Status != 503 || call.Executed != verdict.No || call.Reason != "NoCapacity" {
		t.Errorf("recorded %+v", call)
	}
}

// TestNoCallIsMadeTwice breaks connections in every way in which net/http would
// repeat a request that it may repeat.
func TestNoCallIsMadeTwice(t *testing.T) {
	ways := map[string]func(w http.ResponseWriter){
		"before the answer": func(http.ResponseWriter) { panic(http.ErrAbortHandler) },
		"in the middle of the answer": func(w http.ResponseWriter) {
			w.Header().Set("Content-Length", "1000")
			_, _ = io.WriteString(w, "not all")
			panic(http.ErrAbortHandler)
		},
	}
	for name, breakOff := range ways {
		t.Run(name, func(t *testing.T) {
			var hits atomic.Int64
			config := at(t, func(w http.ResponseWriter, r *http.Request) {
				// The connection of the first call is used again.
				if hits.Add(1) == 1 {
					echo(w, r)
					return
				}
				_, _ = io.Copy(io.Discard, r.Body)
				breakOff(w)
			})
			calls := load.Some(t.Context(), config, 2)
			if hits.Load() != 2 || !calls[0].Succeeded() || calls[1].Outcome != verdict.Broken {
				t.Errorf("%d requests for 2 calls: %+v", hits.Load(), calls)
			}
		})
	}
}

func TestACallIsGivenUpAfterItsPatience(t *testing.T) {
	over := make(chan struct{})
	config := at(t, func(http.ResponseWriter, *http.Request) { <-over })
	config.Patience = 10 * time.Millisecond
	call := load.Some(t.Context(), config, 1)[0]
	close(over)
	if call.Outcome != verdict.Unanswered {
		t.Errorf("recorded %+v", call)
	}
}

func TestALoadReturnsEveryCallThatItBegan(t *testing.T) {
	for name, limit := range map[string]func(*load.Config){
		"open":   func(c *load.Config) { c.Rate = 2000 },
		"closed": func(c *load.Config) { c.Clients = 4 },
	} {
		t.Run(name, func(t *testing.T) {
			enough := make(chan struct{})
			var hits atomic.Int64
			config := at(t, func(w http.ResponseWriter, r *http.Request) {
				if hits.Add(1) == 50 {
					close(enough)
				}
				echo(w, r)
			})
			limit(&config)
			l := load.Start(t.Context(), config)
			<-enough
			calls := l.Stop()
			nonces := make(map[string]bool)
			for _, call := range calls {
				nonces[call.Nonce] = true
			}
			if len(calls) != int(hits.Load()) || len(nonces) != len(calls) || l.Begun() != len(calls) {
				t.Errorf("%d calls, %d nonces, %d begun, %d requests", len(calls), len(nonces), l.Begun(), hits.Load())
			}
		})
	}
}

func TestGatewaysThatAreNotReadyGetNoCalls(t *testing.T) {
	var ready atomic.Bool
	probed := make(chan struct{}, 1000)
	health := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if !ready.Load() {
			w.WriteHeader(http.StatusServiceUnavailable)
		}
		probed <- struct{}{}
	}))
	defer health.Close()
	var spared atomic.Int64
	config := at(t, echo)
	away := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { spared.Add(1); echo(w, r) }))
	defer away.Close()
	config.Targets = append(config.Targets, load.Target{Name: "away", URL: away.URL, Ready: health.URL})
	config.Clients = 2
	l := load.Start(t.Context(), config)
	// The answer to the first probe is known when the second one is made.
	<-probed
	<-probed
	before := spared.Load()
	<-probed
	if got := spared.Load(); got != before {
		t.Errorf("%d calls came to a gateway that is not ready", got-before)
	}
	l.Stop()
}
