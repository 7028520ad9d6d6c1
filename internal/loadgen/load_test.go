package loadgen_test

import (
	"context"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/windlass-dev/windlass/internal/loadgen"
)

const ms = time.Millisecond

// takes makes calls that take a while and record their turn.
func takes(d time.Duration) func(loadgen.Turn) func(context.Context) loadgen.Turn {
	return func(turn loadgen.Turn) func(context.Context) loadgen.Turn {
		return func(context.Context) loadgen.Turn {
			time.Sleep(d)
			return turn
		}
	}
}

func TestAnOpenLoopBeginsCallsWhenTheyAreDue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		due := []time.Duration{0, 0, 5 * ms, time.Second}
		got := loadgen.Start(t.Context(), loadgen.Config[loadgen.Turn]{Arrivals: slices.Values(due), Next: takes(time.Minute)}).Wait()
		want := []loadgen.Turn{{N: 0}, {N: 1}, {N: 2, Due: 5 * ms}, {N: 3, Due: time.Second}}
		slices.SortFunc(got, func(a, b loadgen.Turn) int { return a.N - b.N })
		if diff := cmp.Diff(want, got); diff != "" {
			t.Error(diff)
		}
	})
}

func TestAnOpenLoopRecordsWhatItRefuses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		config := loadgen.Config[loadgen.Turn]{
			Arrivals: slices.Values([]time.Duration{0, 10 * ms, 20 * ms, 101 * ms}), MaxInFlight: 2, Next: takes(100 * ms),
			Refused: func(turn loadgen.Turn) loadgen.Turn { return loadgen.Turn{N: -turn.N} },
		}
		l := loadgen.Start(t.Context(), config)
		var got []int
		for _, turn := range l.Wait() {
			got = append(got, turn.N)
		}
		if want := []int{-2, 0, 1, 3}; !slices.Equal(got, want) || l.Begun() != 3 || l.Ended() != 3 {
			t.Errorf("recorded %v, want %v; %d begun, %d ended", got, want, l.Begun(), l.Ended())
		}
	})
}

func TestAStoppedLoadWaitsForItsCalls(t *testing.T) {
	for name, config := range map[string]loadgen.Config[loadgen.Turn]{
		"open":   {Arrivals: slices.Values([]time.Duration{0, time.Hour})},
		"closed": {Clients: 1},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				config.Next = takes(time.Minute)
				l := loadgen.Start(t.Context(), config)
				synctest.Wait()
				began := time.Now()
				if got := l.Stop(); len(got) != 1 || time.Since(began) != time.Minute {
					t.Errorf("%d calls after %v", len(got), time.Since(began))
				}
			})
		})
	}
}

func TestAClosedLoopsClientsCallOneAfterTheOtherAndRest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		began := map[int][]time.Duration{}
		start := time.Now()
		loadgen.Start(t.Context(), loadgen.Config[int]{
			Clients: 2, Calls: 6,
			Rest: func(client int) time.Duration { return time.Duration(client) * time.Second },
			Next: func(turn loadgen.Turn) func(context.Context) int {
				return func(context.Context) int {
					mu.Lock()
					began[turn.Client] = append(began[turn.Client], time.Since(start))
					mu.Unlock()
					time.Sleep(time.Second + time.Duration(turn.Client))
					return turn.Client
				}
			},
		}).Wait()
		want := map[int][]time.Duration{
			0: {0, time.Second, 2 * time.Second, 3 * time.Second},
			1: {0, 2*time.Second + 1},
		}
		if diff := cmp.Diff(want, began); diff != "" {
			t.Error(diff)
		}
	})
}

// The first call of each client is its own, in whatever order the clients run.
func TestALoadMakesAllItsCallsAndNoMore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := loadgen.Start(t.Context(), loadgen.Config[int]{Clients: 3, Calls: 10, Next: func(turn loadgen.Turn) func(context.Context) int {
			return func(context.Context) int {
				time.Sleep(time.Duration(turn.Client) * time.Hour)
				return turn.Client
			}
		}})
		clients := map[int]int{}
		for _, client := range l.Wait() {
			clients[client]++
		}
		if want := map[int]int{0: 8, 1: 1, 2: 1}; !cmp.Equal(clients, want) || !l.Exhausted() {
			t.Errorf("calls by client: %v, want %v; exhausted: %v", clients, want, l.Exhausted())
		}
	})
}

func TestPoissonArrivalsComeAtTheirRate(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		rate := rapid.Float64Range(50, 500).Draw(t, "rate")
		seed := rapid.Uint64().Draw(t, "seed")
		draw := func() []time.Duration {
			return slices.Collect(loadgen.Within(100*time.Second, loadgen.Poisson(rand.New(rand.NewPCG(seed, 0)), rate)))
		}
		times := draw()
		if !slices.IsSorted(times) || times[len(times)-1] >= 100*time.Second {
			t.Fatalf("they do not come in turn within 100 s, the last at %v", times[len(times)-1])
		}
		// Within six standard deviations.
		want := 100 * rate
		if off := float64(len(times)) - want; off*off > 36*want+1 {
			t.Fatalf("%d calls, want about %v", len(times), want)
		}
		if !slices.Equal(times, draw()) {
			t.Fatal("the same seed yields others")
		}
	})
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
	b := loadgen.Balance(t.Context(), []loadgen.Target{{Name: "here", URL: "http://here"}, {Name: "away", URL: "http://away", Ready: health.URL}}, loadgen.Client{})
	defer b.Close()
	picked := func() map[string]bool {
		return map[string]bool{b.Pick(0).Name: true, b.Pick(1).Name: true}
	}
	// The answer to one probe is known when the next one is made.
	<-probed
	<-probed
	if got := picked(); got["away"] || !got["here"] {
		t.Errorf("picked %v while one is not ready", got)
	}
	ready.Store(true)
	<-probed
	<-probed
	<-probed
	if got := picked(); !got["away"] || !got["here"] {
		t.Errorf("picked %v while both are ready", got)
	}
}
