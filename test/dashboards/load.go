package main

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"slices"
	"time"

	"github.com/windlass-dev/windlass/internal/loadgen"
	"github.com/windlass-dev/windlass/internal/sleep"
	"github.com/windlass-dev/windlass/test/lab"
)

// patience is how long callers wait.
const patience = 15 * time.Second

// load creates the functions and calls them, and returns since when that is to be shown.
// It does not wait for the last answers: Prometheus is to be asked while calls wait.
func load(ctx context.Context, l *lab.Lab) (began time.Time, err error) {
	if err := furnish(ctx, l); err != nil {
		return began, err
	}
	balancer := loadgen.Balance(ctx, l.Targets(), loadgen.Client{Timeout: patience})
	began = begin(time.Now())
	fmt.Fprintf(os.Stdout, "%d streams of calls for %v\n", len(streams), time.Until(began.Add(shown)).Round(time.Second))
	lead := time.Until(began)
	for _, s := range streams {
		loadgen.Start(ctx, loadgen.Config[loadgen.Outcome]{Arrivals: s.arrivals(lead), Next: s.caller(balancer)})
		for _, b := range s.bursts {
			at := slices.Repeat([]time.Duration{lead + b.at}, b.calls)
			loadgen.Start(ctx, loadgen.Config[loadgen.Outcome]{Arrivals: slices.Values(at), Next: s.caller(balancer)})
		}
	}
	sleep.For(ctx, time.Until(began.Add(shown)))
	return began, ctx.Err()
}

// caller makes the stream's calls, whose outcomes are for the dashboards to show.
func (s stream) caller(balancer *loadgen.Balancer) func(loadgen.Turn) func(context.Context) loadgen.Outcome {
	return func(turn loadgen.Turn) func(context.Context) loadgen.Outcome {
		// Each query goes to all gateways by turns.
		gateway := balancer.Pick(turn.N + turn.N/len(s.queries))
		url := fmt.Sprintf("%s/function/%s.%s?%s", gateway.URL, s.function, s.namespace, s.queries[turn.N%len(s.queries)])
		return func(ctx context.Context) loadgen.Outcome {
			return gateway.Do(ctx, loadgen.Request{Method: http.MethodGet, URL: url, Resend: true}).Outcome
		}
	}
}

// begin is when the load begins to be shown: so that what is shown ends between two labels
// of a graph's time, which the edge would cut off.
func begin(now time.Time) time.Time {
	const labels = 30 * time.Second
	last := now.Add(before + shown).Add(labels / 2).Truncate(labels).Add(labels / 2)
	return last.Add(-shown)
}

// furnish creates namespaces, the Runtime and functions.
func furnish(ctx context.Context, l *lab.Lab) error {
	var namespaces []string
	if err := l.Cluster.Objects.Create(ctx, pool()); err != nil {
		return err
	}
	for _, s := range streams {
		if !slices.Contains(namespaces, s.namespace) {
			namespaces = append(namespaces, s.namespace)
			if err := l.Cluster.Namespace(ctx, s.namespace); err != nil {
				return err
			}
		}
		if s.spec == nil {
			continue
		}
		if err := l.Cluster.Objects.Create(ctx, s.manifest()); err != nil {
			return fmt.Errorf("%s/%s: %w", s.namespace, s.function, err)
		}
	}
	return nil
}
