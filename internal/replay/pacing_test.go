package replay

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
)

// fakeGateway answers in memory after a time of its own.
type fakeGateway struct {
	began time.Time
	takes time.Duration
	// answers is the header of every answer.
	answers map[string]string
	mu      sync.Mutex
	arrived []time.Duration
}

func newFakeGateway(takes time.Duration) *fakeGateway {
	return &fakeGateway{began: time.Now(), takes: takes, answers: map[string]string{
		"Windlass-Executed": "yes", "Server-Timing": "queue;dur=1, function;dur=10",
	}}
}

func (g *fakeGateway) RoundTrip(r *http.Request) (*http.Response, error) {
	g.mu.Lock()
	g.arrived = append(g.arrived, time.Since(g.began))
	g.mu.Unlock()
	select {
	case <-time.After(g.takes):
	case <-r.Context().Done():
		return nil, r.Context().Err()
	}
	header := make(http.Header)
	for k, v := range g.answers {
		header.Set(k, v)
	}
	return &http.Response{StatusCode: 200, Header: header, Body: io.NopCloser(strings.NewReader("ok"))}, nil
}

func newReplay(t *testing.T, g http.RoundTripper, progress func(Progress), maxInFlight int, at ...time.Duration) *Replay {
	t.Helper()
	tr := traceOf(at...)
	r, err := New(Config{Gateway: "http://gateway", MaxInFlight: maxInFlight, Timeout: 30 * time.Second},
		Deps{Transport: g, Progress: progress}, tr, mapped(t, tr, target("f", 0)))
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func TestCallsAreSentWhenTheyAreDueHoweverSlowTheAnswersAre(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newFakeGateway(10 * time.Second)
		due := []time.Duration{0, 0, 5 * ms, 1 * time.Second, 1001 * ms, 3 * time.Second}
		samples, err := newReplay(t, g, nil, 100, due...).Run(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(due, g.arrived); diff != "" {
			t.Errorf("times of arrival: %s", diff)
		}
		for i, s := range samples {
			want := Sample{Function: "f", At: due[i], Total: 10 * time.Second, Status: 200, Executed: "yes", Own: 10 * ms, OwnKnown: true}
			if diff := cmp.Diff(want, s); diff != "" {
				t.Errorf("sample %d: %s", i, diff)
			}
		}
	})
}

func TestACallBeyondTheBoundIsNotSentAndSaysSo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newFakeGateway(100 * ms)
		samples, err := newReplay(t, g, nil, 2, 0, 10*ms, 20*ms, 101*ms).Run(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff([]time.Duration{0, 10 * ms, 101 * ms}, g.arrived); diff != "" {
			t.Errorf("times of arrival: %s", diff)
		}
		want := Sample{Function: "f", At: 20 * ms, Outcome: NotSent, Failure: "not sent: 2 calls were under way"}
		if diff := cmp.Diff(want, samples[2]); diff != "" {
			t.Error(diff)
		}
		if r := Summarize(samples, nil).Total; r.Errors != 1 || r.NotSent != 1 || r.Lost != 0 || r.Calls != 4 {
			t.Errorf("total %+v", r)
		}
	})
}

func TestALateSenderSendsAtOnceAndSaysHowLate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newFakeGateway(0)
		tr := traceOf(0, 10*ms)
		slow := target("f", 0)
		slow.Body = func(time.Duration) []byte {
			time.Sleep(50 * ms)
			return nil
		}
		r, err := New(Config{Gateway: "http://gateway", MaxInFlight: 1, Timeout: time.Second}, Deps{Transport: g}, tr, mapped(t, tr, slow))
		if err != nil {
			t.Fatal(err)
		}
		samples, err := r.Run(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if got := []time.Duration{samples[0].Late, samples[1].Late}; !cmp.Equal(got, []time.Duration{0, 40 * ms}) {
			t.Errorf("late by %v, want 0 and 40ms", got)
		}
		if late := Summarize(samples, nil).SendLateMax; late != 40*ms {
			t.Errorf("SendLateMax %v, want 40ms", late)
		}
	})
}

func TestACallWithoutAnAnswerInTimeIsLost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		samples, err := newReplay(t, newFakeGateway(time.Hour), nil, 1, 0).Run(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		want := []Sample{{Function: "f", Outcome: NoAnswer, Total: 30 * time.Second, Failure: "no answer: timed out"}}
		if diff := cmp.Diff(want, samples); diff != "" {
			t.Error(diff)
		}
	})
}

func TestAStoppedReplaySendsNothingMoreAndLosesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newFakeGateway(10 * time.Second)
		ctx, cancel := context.WithTimeout(t.Context(), 12*time.Second)
		defer cancel()
		samples, err := newReplay(t, g, nil, 10, 0, 5*time.Second, 20*time.Second).Run(ctx)
		if !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("error %v, want that of the context", err)
		}
		if time.Since(g.began) != 12*time.Second {
			t.Errorf("Run returned after %v, want 12s", time.Since(g.began))
		}
		if len(samples) != 2 || samples[0].Outcome != Answered || samples[1].Outcome != CutOff {
			t.Errorf("samples %+v, want one answered and one cut off", samples)
		}
		r := Summarize(samples, nil)
		if r.Total.Calls != 1 || r.Total.CutOff != 1 || r.Total.Errors != 0 || r.Total.Lost != 0 {
			t.Errorf("total %+v", r.Total)
		}
	})
}

func TestAReplayStoppedAfterItsLastCallWasSentSaysSo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := newReplay(t, newFakeGateway(10*time.Second), nil, 10, 0).Run(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("error %v, want that of the context", err)
		}
	})
}

func TestProgressIsToldEverySecondAndAtTheEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var got []Progress
		g := newFakeGateway(1100 * ms)
		r := newReplay(t, g, func(p Progress) { got = append(got, p) }, 1, 100*ms, 200*ms, 1500*ms)
		if _, err := r.Run(t.Context()); err != nil {
			t.Fatal(err)
		}
		length := 1500 * ms
		want := []Progress{
			{Sent: 1, InFlight: 1, NotSent: 1, Errors: 1, Calls: 3, Elapsed: time.Second, Length: length},
			{Sent: 2, Done: 1, InFlight: 1, NotSent: 1, Errors: 1, Calls: 3, Elapsed: length, Length: length},
			{Sent: 2, Done: 2, NotSent: 1, Errors: 1, Calls: 3, Elapsed: length, Length: length, Ended: true},
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Error(diff)
		}
	})
}

func TestSlowProgressDelaysNoCall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newFakeGateway(0)
		due := []time.Duration{0, 1500 * ms, 2500 * ms, 3500 * ms}
		r := newReplay(t, g, func(Progress) { time.Sleep(10 * time.Second) }, 1, due...)
		if _, err := r.Run(t.Context()); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(due, g.arrived); diff != "" {
			t.Errorf("times of arrival: %s", diff)
		}
	})
}

func TestNewRefusesWhatCannotRun(t *testing.T) {
	good := Config{Gateway: "http://127.0.0.1:1", MaxInFlight: 1, Timeout: time.Second}
	tr := traceOf(0)
	unsorted := traceOf(1, 0)
	for name, tt := range map[string]struct {
		change  func(*Config, *Deps)
		mapping *Mapping
		want    string
	}{
		"gateway without a scheme": {func(c *Config, _ *Deps) { c.Gateway = "127.0.0.1:8080" }, nil, "Gateway"},
		"gateway of another kind":  {func(c *Config, _ *Deps) { c.Gateway = "ftp://host" }, nil, "Gateway"},
		"no slot":                  {func(c *Config, _ *Deps) { c.MaxInFlight = 0 }, nil, "MaxInFlight"},
		"too many slots":           {func(c *Config, _ *Deps) { c.MaxInFlight = 100_001 }, nil, "MaxInFlight"},
		"no time":                  {func(c *Config, _ *Deps) { c.Timeout = 0 }, nil, "Timeout"},
		"no transport":             {func(_ *Config, d *Deps) { d.Transport = nil }, nil, "Transport"},
		"another trace's mapping":  {func(*Config, *Deps) {}, &Mapping{}, "has no target"},
	} {
		t.Run(name, func(t *testing.T) {
			c, d, m := good, Deps{Transport: http.DefaultTransport}, mapped(t, tr, target("f", 0))
			tt.change(&c, &d)
			if tt.mapping != nil {
				m = *tt.mapping
			}
			if _, err := New(c, d, tr, m); err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("error %v, want one about %s", err, tt.want)
			}
		})
	}
	if _, err := New(good, Deps{Transport: http.DefaultTransport}, unsorted, mapped(t, unsorted, target("f", 0))); err == nil {
		t.Error("a trace that is not sorted was taken")
	}
}
