package main

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/windlass-dev/windlass/test/faults/lab"
)

// patience is how long callers wait.
const patience = 15 * time.Second

// callers call all gateways of a lab by turns.
type callers struct {
	gateways []string
	client   *http.Client
	turn     atomic.Int64
}

// load creates the functions and calls them, and returns since when that is to be shown.
func load(ctx context.Context, l *lab.Lab) (began time.Time, err error) {
	if err := furnish(ctx, l); err != nil {
		return began, err
	}
	c := &callers{client: &http.Client{Timeout: patience, Transport: &http.Transport{MaxIdleConnsPerHost: 1000}}}
	for _, m := range l.Gateways {
		c.gateways = append(c.gateways, l.CallURL(m))
	}
	began = begin(time.Now())
	fmt.Fprintf(os.Stdout, "%d streams of calls for %v\n", len(streams), time.Until(began.Add(shown)).Round(time.Second))
	var all sync.WaitGroup
	for _, s := range streams {
		all.Go(func() { c.follow(ctx, s, began) })
		for _, b := range s.bursts {
			all.Go(func() { c.burst(ctx, s, b.calls, began.Add(b.at)) })
		}
	}
	all.Wait()
	return began, ctx.Err()
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

// follow calls at the stream's rate. It does not wait for answers: Prometheus is to be
// asked while calls wait.
func (c *callers) follow(ctx context.Context, s stream, began time.Time) {
	const step = 50 * time.Millisecond
	tick := time.NewTicker(step)
	defer tick.Stop()
	due := 0.0
	for time.Since(began) < shown {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		for due += s.rate(time.Since(began)+before) * step.Seconds(); due >= 1; due-- {
			go c.call(ctx, s)
		}
	}
}

// burst makes so many calls at once.
func (c *callers) burst(ctx context.Context, s stream, calls int, at time.Time) {
	select {
	case <-ctx.Done():
		return
	case <-time.After(time.Until(at)):
	}
	for range calls {
		go c.call(ctx, s)
	}
}

// call makes one call. What becomes of it is for the dashboards to show.
func (c *callers) call(ctx context.Context, s stream) {
	turn := int(c.turn.Add(1))
	query := s.queries[turn%len(s.queries)]
	url := fmt.Sprintf("%s/function/%s/%s?%s", c.gateways[turn%len(c.gateways)], s.namespace, s.function, query)
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, http.NoBody)
	if err != nil {
		return
	}
	response, err := c.client.Do(request)
	if err != nil {
		return
	}
	defer response.Body.Close()
	_, _ = io.Copy(io.Discard, response.Body)
}
