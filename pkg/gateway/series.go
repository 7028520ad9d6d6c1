package gateway

import (
	"sync"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/windlass-dev/windlass/api/v1alpha1"
	"github.com/windlass-dev/windlass/pkg/gateway/timeline"
	"github.com/windlass-dev/windlass/pkg/invoke"
)

// functionSeries are the series of one function, found once for all its calls.
type functionSeries struct {
	duration prometheus.Observer
	inFlight prometheus.Gauge
	cold     prometheus.Counter
	stages   [timeline.Stages]prometheus.Counter

	mu sync.Mutex
	// answered is by what clients were told, as far as there was a call of it.
	answered map[outcome]prometheus.Counter
}

// outcome is what a client was told.
type outcome struct {
	code     string
	executed invoke.Executed
}

// exists tells whether a function has series. The catalog forgets a function
// before it tells of that, and so before the series are deleted.
func (m *metrics) exists(fn *v1alpha1.Function) bool {
	now, exists := m.catalog.Get(fn.Key())
	return exists && now.UID == fn.UID
}

// of finds the series of a function; nil if it has none.
func (m *metrics) of(fn *v1alpha1.Function) *functionSeries {
	m.gone.RLock()
	defer m.gone.RUnlock()
	if !m.exists(fn) {
		return nil
	}
	key := fn.Key()
	if s, known := m.functions.Load(key); known {
		return s.(*functionSeries)
	}
	s := &functionSeries{
		duration: m.duration.WithLabelValues(key.Namespace, key.Name),
		inFlight: m.inFlight.WithLabelValues(key.Namespace, key.Name),
		cold:     m.cold.WithLabelValues(key.Namespace, key.Name),
		answered: make(map[outcome]prometheus.Counter),
	}
	for stage := range timeline.Stage(timeline.Stages) {
		s.stages[stage] = m.stageSums.WithLabelValues(key.Namespace, key.Name, stage.String())
	}
	// Whoever came first has the same ones.
	found, _ := m.functions.LoadOrStore(key, s)
	return found.(*functionSeries)
}

// answered counts the answer to a call of a function.
func (m *metrics) answered(fn *v1alpha1.Function, s *functionSeries, o outcome) {
	s.mu.Lock()
	defer s.mu.Unlock()
	counter, known := s.answered[o]
	if !known {
		m.gone.RLock()
		defer m.gone.RUnlock()
		if !m.exists(fn) {
			return
		}
		counter = m.invocations.WithLabelValues(fn.Namespace, fn.Name, o.code, string(o.executed))
		s.answered[o] = counter
	}
	counter.Inc()
}
