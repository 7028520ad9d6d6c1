package gateway

import (
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/windlass-dev/windlass/api/v1alpha1"
	"github.com/windlass-dev/windlass/pkg/catalog"
	"github.com/windlass-dev/windlass/pkg/gateway/core"
	"github.com/windlass-dev/windlass/pkg/gateway/problems"
	"github.com/windlass-dev/windlass/pkg/gateway/timeline"
	"github.com/windlass-dev/windlass/pkg/invocation"
	"github.com/windlass-dev/windlass/pkg/rollout"
)

// A bucket names the trace of a call that fell into it, if there is one.
func TestHistogramsNameTraces(t *testing.T) {
	for _, trace := range []string{"", "0af7651916cd43dd8448eb211c80319c"} {
		histogram := phaseDurationSeconds.Vec().WithLabelValues("queue")
		observeSeconds(histogram, 3*time.Millisecond, trace)
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
	m := newMetrics(nil, nil, newAdmitter(config.capacity()))
	if m != nil {
		t.Fatal("there are metrics")
	}
	c := &call{callState: callState{function: &v1alpha1.Function{}, times: timeline.Begin(time.Now())}}
	m.ticketOffered(true)
	m.claimGranted()
	m.claimRefused(core.ErrNotWaiting)
	m.callRejected(c.function, problems.FunctionNotFound)
	m.callEnded(c, m.callAdmitted(c.function), &callEnd{})
	m.deleteFunction(invocation.FunctionKey{}, true)
}

// BenchmarkMetricsOfACall measures what counting one call takes: all of it, and without
// what the timeline needs anyway.
func BenchmarkMetricsOfACall(b *testing.B) {
	functions := catalog.New()
	fn := &v1alpha1.Function{ObjectMeta: metav1.ObjectMeta{
		Namespace: "default", Name: "f", UID: "uid", Annotations: map[string]string{v1alpha1.AnnotationRevision: "1"},
	}}
	functions.Put(rollout.Alone(fn))
	config := DefaultConfig()
	for name, reg := range map[string]prometheus.Registerer{"on": prometheus.NewRegistry(), "off": nil} {
		b.Run(name, func(b *testing.B) {
			m := newMetrics(reg, functions, newAdmitter(config.capacity()))
			b.ReportAllocs()
			for now := time.Now(); b.Loop(); now = now.Add(time.Millisecond) {
				c := &call{callState: callState{function: fn, to: destination{unit: fn}, times: timeline.Begin(now), status: 200, executed: invocation.ExecutedYes}}
				series := m.callAdmitted(c.function)
				m.ticketOffered(false)
				m.claimGranted()
				c.times.Offered(now.Add(10 * time.Microsecond))
				c.times.Claimed(now.Add(300 * time.Microsecond))
				c.times.Headed(now.Add(3*time.Millisecond), 200*time.Microsecond, 2*time.Millisecond, 0)
				c.times.Executed(now.Add(3*time.Millisecond), 2*time.Millisecond)
				c.times.End(now.Add(3100 * time.Microsecond))
				end := c.callEnd()
				m.callEnded(c, series, &end)
			}
		})
	}
}
