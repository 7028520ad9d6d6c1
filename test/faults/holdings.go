package main

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"time"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"

	"github.com/windlass-dev/windlass/internal/sleep"
)

// holding is what a member holds.
type holding struct {
	name, role      string
	goroutines, fds float64
	// waiting are calls at a gateway, and tickets at a scheduler.
	waiting float64
}

// How much more than usual a member may hold: connections that come and go.
const (
	spareGoroutines = 120
	spareFDs        = 60
	leakPatience    = 20 * time.Second
)

// leaks says what members still hold some time after a row.
func (r *runner) leaks(ctx context.Context) []string {
	ctx, cancel := context.WithTimeout(ctx, leakPatience)
	defer cancel()
	var found []string
	for {
		now, err := r.holdings(ctx)
		switch {
		case err == nil:
			found = append(leaksOf(r.usual, now), r.surplus()...)
			if len(found) == 0 {
				return nil
			}
		case len(found) == 0:
			found = []string{"nobody knows of leaks: " + err.Error()}
		}
		if ctx.Err() != nil {
			return found
		}
		sleep.For(ctx, 500*time.Millisecond)
	}
}

// surplus says which of the standing functions have more pods than they may: of the latest
// revision, and of the one before it, which stays warm for a return.
func (r *runner) surplus() (found []string) {
	for _, name := range []string{work, again} {
		revisions := make(map[string]int)
		for _, pod := range r.lab.Kubelet.PodsOf(name) {
			revisions[pod.Revision]++
		}
		for revision, pods := range revisions {
			if pods > atMost {
				found = append(found, fmt.Sprintf("leak: revision %s of %s has %d pods, and may have %d", revision, name, pods, atMost))
			}
		}
		if len(revisions) > 2 {
			found = append(found, fmt.Sprintf("leak: %d revisions of %s have pods, and two may", len(revisions), name))
		}
	}
	return found
}

// leaksOf compares what members hold with what was usual for the one of their role
// that held most: the owner of a function has its instances' connections, and
// another one may own it later.
func leaksOf(usual, now []holding) (leaks []string) {
	for _, h := range now {
		var high holding
		for _, u := range usual {
			if u.role == h.role {
				high.goroutines, high.fds = max(high.goroutines, u.goroutines), max(high.fds, u.fds)
			}
		}
		if h.goroutines > high.goroutines+spareGoroutines || h.fds > high.fds+spareFDs {
			leaks = append(leaks, fmt.Sprintf("leak: %s has %.0f goroutines and %.0f files, and no %s had more than %.0f and %.0f at the start",
				h.name, h.goroutines, h.fds, h.role, high.goroutines, high.fds))
		}
		if h.waiting > 0 {
			leaks = append(leaks, fmt.Sprintf("leak: %.0f calls wait at %s, and nobody calls", h.waiting, h.name))
		}
	}
	return leaks
}

// holdings asks every gateway and scheduler what it holds.
func (r *runner) holdings(ctx context.Context) ([]holding, error) {
	var all []holding
	for _, m := range slices.Concat(r.lab.Gateways, r.lab.Schedulers) {
		metrics, err := readMetrics(ctx, r.lab.MetricsURL(m))
		if err != nil {
			return nil, fmt.Errorf("%s does not tell what it holds: %w", m.Name, err)
		}
		h := holding{
			name: m.Name, role: "gateway",
			goroutines: sum(metrics["go_goroutines"]), fds: sum(metrics["process_open_fds"]),
			waiting: sum(metrics["windlass_scheduler_queue_length"]) + sum(metrics["windlass_gateway_invocations_in_flight"]),
		}
		if slices.Contains(r.lab.Schedulers, m) {
			h.role = "scheduler"
		}
		all = append(all, h)
	}
	return all, nil
}

func readMetrics(ctx context.Context, url string) (map[string]*dto.MetricFamily, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return nil, err
	}
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		return nil, err
	}
	defer answer.Body.Close()
	parser := expfmt.NewTextParser(model.UTF8Validation)
	return parser.TextToMetricFamilies(answer.Body)
}

// sum adds the gauges and counters of a family up.
func sum(family *dto.MetricFamily) float64 {
	var total float64
	for _, m := range family.GetMetric() {
		total += m.GetGauge().GetValue() + m.GetCounter().GetValue()
	}
	return total
}
