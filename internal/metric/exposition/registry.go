package exposition

import (
	"cmp"
	"fmt"
	"slices"
	"sync"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
)

// Registry is a prometheus.Registry that can be read without making a message of each
// series of a Collector.
type Registry struct {
	// The embedded registry has all collectors, so that it finds contradictions and Gather
	// returns all; ordinary has those that are no Collector.
	*prometheus.Registry
	ordinary *prometheus.Registry

	mu         sync.Mutex
	collectors []collector
}

// collector is a Collector of any rows.
type collector interface {
	prometheus.Collector
	families() []family
}

// NewRegistry makes an empty one.
func NewRegistry() *Registry {
	return &Registry{Registry: prometheus.NewRegistry(), ordinary: prometheus.NewRegistry()}
}

// Register implements prometheus.Registerer.
func (r *Registry) Register(c prometheus.Collector) error {
	if err := r.Registry.Register(c); err != nil {
		return err
	}
	ours, is := c.(collector)
	if !is {
		return r.ordinary.Register(c)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.collectors = append(r.collectors, ours)
	return nil
}

// MustRegister implements prometheus.Registerer.
func (r *Registry) MustRegister(all ...prometheus.Collector) {
	for _, c := range all {
		if err := r.Register(c); err != nil {
			panic(err)
		}
	}
}

// Unregister implements prometheus.Registerer.
func (r *Registry) Unregister(c prometheus.Collector) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.collectors = slices.DeleteFunc(r.collectors, func(ours collector) bool { return ours == c })
	r.ordinary.Unregister(c)
	return r.Registry.Unregister(c)
}

// Source is what can be read: a Registry.
type Source interface{ Read() (Reading, error) }

// Reading has the series of all collectors at one time.
type Reading struct {
	// Both are in the order of their names.
	ordinary []*dto.MetricFamily
	families []family
}

// Read reads all collectors. As in a prometheus.Registry, one that panics fails the
// reading and not the program.
func (r *Registry) Read() (reading Reading, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("a collector panicked: %v", p)
		}
	}()
	r.mu.Lock()
	collectors := slices.Clone(r.collectors)
	r.mu.Unlock()
	for _, c := range collectors {
		reading.families = append(reading.families, c.families()...)
	}
	slices.SortFunc(reading.families, func(a, b family) int { return cmp.Compare(a.Name, b.Name) })
	reading.ordinary, err = r.ordinary.Gather()
	return reading, err
}
