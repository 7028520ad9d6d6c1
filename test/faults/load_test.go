package main

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

	"github.com/windlass-dev/windlass/internal/loadgen"
	"github.com/windlass-dev/windlass/pkg/invocation"
	"github.com/windlass-dev/windlass/test/faults/verdict"
)

// at makes a load of calls to a gateway that the handler plays.
func at(t *testing.T, gateway http.HandlerFunc) loadConfig {
	server := httptest.NewServer(gateway)
	t.Cleanup(server.Close)
	return loadConfig{
		Targets: []loadgen.Target{{Name: "g", URL: server.URL}}, Patience: time.Minute, Name: "t", Seed: 1,
		Next: func(*rand.Rand) request { return request{Function: "ns/f", Query: "ms=1", Body: 100} },
	}
}

// echo answers as the lab's function does.
func echo(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	sum := sha256.Sum256(body)
	w.Header().Set(invocation.HeaderExecuted, "yes")
	w.Header().Set(invocation.HeaderInvocationID, "i1")
	fmt.Fprintf(w, "%s %d %s\n", r.Header.Get("Lab-Nonce"), len(body), hex.EncodeToString(sum[:]))
}

func TestASuccessIsRecordedAsSuch(t *testing.T) {
	var asked atomic.Pointer[http.Request]
	config := at(t, func(w http.ResponseWriter, r *http.Request) { asked.Store(r.Clone(r.Context())); echo(w, r) })
	call := callSome(t.Context(), config, 1)[0]
	if !call.Succeeded() || !call.Whole || call.Echo != call.Nonce || call.Invocation != "i1" || call.Executed != verdict.Yes || call.Gateway != "g" || call.Ended <= call.Began {
		t.Errorf("recorded %+v", call)
	}
	if r := asked.Load(); r.Method != http.MethodPost || r.URL.Path != "/function/f.ns" || r.URL.RawQuery != "ms=1" {
		t.Errorf("asked for %s %s", r.Method, r.URL)
	}
}

func TestAnAnswerThatDoesNotFitTheRequestIsNotWhole(t *testing.T) {
	config := at(t, func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprintf(w, "%s 100 %x\n", r.Header.Get("Lab-Nonce"), sha256.Sum256(nil))
	})
	if call := callSome(t.Context(), config, 1)[0]; !call.Succeeded() || call.Whole {
		t.Errorf("recorded %+v", call)
	}
}

func TestAProblemIsRecordedWithItsReason(t *testing.T) {
	config := at(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set(invocation.HeaderExecuted, "no")
		w.WriteHeader(http.StatusServiceUnavailable)
		_, _ = io.WriteString(w, `{"reason":"NoCapacity"}`)
	})
	call := callSome(t.Context(), config, 1)[0]
	if call.Succeeded() || call.Outcome != verdict.Answered || call.Status != 503 || call.Executed != verdict.No || call.Reason != "NoCapacity" {
		t.Errorf("recorded %+v", call)
	}
}

func TestABrokenConnectionIsRecordedAsSuch(t *testing.T) {
	config := at(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set(invocation.HeaderExecuted, "yes")
		w.Header().Set("Content-Length", "1000")
		_, _ = io.WriteString(w, "not all")
		_ = http.NewResponseController(w).Flush()
		panic(http.ErrAbortHandler)
	})
	call := callSome(t.Context(), config, 1)[0]
	if call.Outcome != verdict.Broken || call.Error != "unexpected EOF" || call.Executed != verdict.Yes {
		t.Errorf("recorded %+v", call)
	}
}

func TestACallIsGivenUpAfterItsPatience(t *testing.T) {
	over := make(chan struct{})
	config := at(t, func(http.ResponseWriter, *http.Request) { <-over })
	config.Patience = 10 * time.Millisecond
	call := callSome(t.Context(), config, 1)[0]
	close(over)
	if call.Outcome != verdict.Unanswered {
		t.Errorf("recorded %+v", call)
	}
}

func TestALoadReturnsEveryCallThatItBegan(t *testing.T) {
	for name, limit := range map[string]func(*loadConfig){
		"open":   func(c *loadConfig) { c.Rate = 2000 },
		"closed": func(c *loadConfig) { c.Clients = 4 },
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
			l := startLoad(t.Context(), config)
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
