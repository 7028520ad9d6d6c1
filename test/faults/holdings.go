package main

import (
	"context"
	"fmt"
	"net/http"
	"time"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"

	"github.com/windlass-dev/windlass/test/faults/lab"
)

// holdings are what a member holds.
type holdings struct {
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
	for {
		var leaks []string
		for name, now := range r.holdings(ctx) {
			usual := r.usual[name]
			if now.goroutines > usual.goroutines+spareGoroutines || now.fds > usual.fds+spareFDs {
				leaks = append(leaks, fmt.Sprintf("leak: %s has %.0f goroutines and %.0f files, and %.0f and %.0f at the start",
					name, now.goroutines, now.fds, usual.goroutines, usual.fds))
			}
			if now.waiting > 0 {
				leaks = append(leaks, fmt.Sprintf("leak: %.0f calls wait at %s, and nobody calls", now.waiting, name))
			}
		}
		if len(leaks) == 0 || ctx.Err() != nil {
			return leaks
		}
		wait(ctx, 500*time.Millisecond)
	}
}

// holdings asks every gateway and scheduler what it holds.
func (r *runner) holdings(ctx context.Context) map[string]holdings {
	all := make(map[string]holdings)
	for _, members := range [][]*lab.Member{r.lab.Gateways, r.lab.Schedulers} {
		for _, m := range members {
			metrics, err := readMetrics(ctx, r.lab.MetricsURL(m))
			if err != nil {
				continue
			}
			all[m.Name] = holdings{
				goroutines: sum(metrics["go_goroutines"]), fds: sum(metrics["process_open_fds"]),
				waiting: sum(metrics["windlass_scheduler_queued"]) + sum(metrics["windlass_gateway_invocations_in_flight"]),
			}
		}
	}
	return all
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
