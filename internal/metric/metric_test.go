package metric

import (
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
)

func TestWhatIsMadeIsWhatWasDeclared(t *testing.T) {
	var set Set
	calls := set.Counter(Stable, "windlass_calls_total", "Calls.", "function")
	held := set.Gauge(Stable, "windlass_held_bytes", "What is held.")
	took := set.Histogram(Stable, "windlass_took_seconds", "What it took.", []float64{1, 2})
	reg := prometheus.NewPedanticRegistry()
	vec, gauge, histogram := calls.Vec(), held.New(), took.New()
	reg.MustRegister(vec, gauge, histogram)
	vec.WithLabelValues("f").Inc()
	histogram.Observe(1.5)
	families, err := reg.Gather()
	if err != nil || len(families) != 3 {
		t.Fatalf("%v, %v", families, err)
	}
	for i, d := range set.All() {
		f := families[i]
		if f.GetName() != d.Name || f.GetHelp() != d.Help || !strings.EqualFold(f.GetType().String(), string(d.Kind)) {
			t.Errorf("%+v became %v", d, f)
		}
	}
	h := families[2].GetMetric()[0].GetHistogram()
	if len(h.GetBucket()) != 2 || len(h.GetPositiveSpan()) == 0 {
		t.Errorf("the histogram lacks classic or native buckets: %v", h)
	}
	if strings.Join([]string{set.All()[0].Unit(), set.All()[1].Unit(), set.All()[2].Unit()}, ",") != ",bytes,seconds" {
		t.Errorf("wrong units in %+v", set.All())
	}
}

func TestADeclarationThatBreaksTheRulesPanics(t *testing.T) {
	for name, declare := range map[string]func(*Set){
		"no stability":           func(s *Set) { s.Gauge(0, "windlass_calls", "Calls.") },
		"another prefix":         func(s *Set) { s.Gauge(Stable, "calls", "Calls.") },
		"a counter not so named": func(s *Set) { s.Counter(Stable, "windlass_calls", "Calls.") },
		"a gauge so named":       func(s *Set) { s.Gauge(Stable, "windlass_calls_total", "Calls.") },
		"no sentence":            func(s *Set) { s.Gauge(Stable, "windlass_calls", "calls") },
		"no buckets":             func(s *Set) { s.Histogram(Stable, "windlass_took_seconds", "Time.", nil) },
		"buckets that fall":      func(s *Set) { s.Histogram(Stable, "windlass_took_seconds", "Time.", []float64{2, 1}) },
		"a label twice":          func(s *Set) { s.Gauge(Stable, "windlass_calls", "Calls.", "a", "a") },
		"a label of targets":     func(s *Set) { s.Gauge(Stable, "windlass_calls", "Calls.", "namespace") },
		"the same name twice": func(s *Set) {
			s.Gauge(Stable, "windlass_calls", "Calls.")
			s.Gauge(Stable, "windlass_calls", "Calls.")
		},
		"no labels where there are some": func(s *Set) { s.Gauge(Stable, "windlass_calls", "Calls.", "a").New() },
	} {
		t.Run(name, func(t *testing.T) {
			defer func() {
				if recover() == nil {
					t.Error("it was taken")
				}
			}()
			declare(new(Set))
		})
	}
}
