package gateway

import (
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"

	"github.com/windlass-dev/windlass/api/v1alpha1"
	"github.com/windlass-dev/windlass/pkg/gateway/table"
	"github.com/windlass-dev/windlass/pkg/gateway/timeline"
	"github.com/windlass-dev/windlass/pkg/invoke"
)

// A bucket names the trace of a call that fell into it, if there is one.
func TestHistogramsNameTraces(t *testing.T) {
	for _, trace := range []string{"", "0af7651916cd43dd8448eb211c80319c"} {
		histogram := stageDurationSeconds.Vec().WithLabelValues("queue")
		observe(histogram, 3*time.Millisecond, trace)
		var told dto.Metric
		if err := histogram.(prometheus.Metric).Write(&told); err != nil {
			t.Fatal(err)
		}
		named := ""
		for _, b := range told.GetHistogram().GetBucket() {
			for _, l := range b.GetExemplar().GetLabel() {
				named += l.GetName() + "=" + l.GetValue()
			}
		}
		want := ""
		if trace != "" {
			want = "trace_id=" + trace
		}
		if told.GetHistogram().GetSampleCount() != 1 || named != want {
			t.Errorf("with the trace %q: %v", trace, &told)
		}
	}
}

func TestNothingIsCountedForNobody(t *testing.T) {
	config := DefaultConfig()
	m := newMetrics(nil, nil, config, newDoor(config))
	if m != nil {
		t.Fatal("there are metrics")
	}
	c := &call{function: &v1alpha1.Function{}, times: timeline.Begin(time.Now())}
	m.offered(true)
	m.claimGranted()
	m.claimRefused(table.ErrNotWaiting)
	m.refusedAtTheEdge(c.function, reasonNotFound)
	m.begun(c)
	m.ended(c)
	m.forget(invoke.FunctionKey{}, true)
}
