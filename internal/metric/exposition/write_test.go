package exposition

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
	"pgregory.net/rapid"

	"github.com/windlass-dev/windlass/internal/metric"
)

// subject is a row: its series are there unless they are negative.
type subject struct {
	name          string
	queued, calls float64
	since         time.Time
	reasons       []string
	runs          *Histogram
}

var (
	set         metric.Set
	queuedDecl  = set.Gauge(metric.Stable, "windlass_m_queued", "What waits, in \"quotes\" and \\ more.", "zone", "name")
	callsDecl   = set.Counter(metric.Stable, "windlass_m_calls_total", "Calls.", "zone", "name")
	reasonsDecl = set.Counter(metric.Stable, "windlass_m_refused_total", "Refusals.", "zone", "name", "why")
	neverDecl   = set.Gauge(metric.Stable, "windlass_m_never", "Nothing.", "zone", "name")
	runsDecl    = set.Native(metric.Stable, "windlass_m_runs_seconds", "Runs.", "zone", "name")
	tookDecl    = set.Histogram(metric.Stable, "windlass_m_d_seconds", "What it took.", []float64{1, 2})
	firstDecl   = set.Counter(metric.Stable, "windlass_a_total", "The first.", "of")
	lastDecl    = set.Gauge(metric.Stable, "windlass_z", "The last.")
)

func collectorOf(subjects []subject) *Collector[subject] {
	one := func(d metric.Declaration, value func(s *subject) float64) Series[subject] {
		return Series[subject]{d, func(s *subject, tell Tell) {
			if v := value(s); v >= 0 {
				tell(Sample{Labels: Labels{"zürich", s.name}, Value: v, Since: s.since})
			}
		}}
	}
	return NewCollector([]Series[subject]{
		one(queuedDecl.Declaration, func(s *subject) float64 { return s.queued }),
		{reasonsDecl.Declaration, func(s *subject, tell Tell) {
			for n, reason := range s.reasons {
				tell(Sample{Labels: Labels{"zürich", s.name, reason}, Value: float64(n)})
			}
		}},
		{runsDecl, func(s *subject, tell Tell) {
			if s.runs != nil {
				tell(Sample{Labels: Labels{"zürich", s.name}, Histogram: s.runs, Since: s.since})
			}
		}},
		one(neverDecl.Declaration, func(*subject) float64 { return -1 }),
		one(callsDecl.Declaration, func(s *subject) float64 { return s.calls }),
	}, func() []subject { return subjects })
}

// registryOf has a Collector, and collectors whose families come before, between and after.
func registryOf(subjects []subject) *Registry {
	r := NewRegistry()
	took, first, last := tookDecl.New(), firstDecl.Vec(), lastDecl.New()
	r.MustRegister(took, first, collectorOf(subjects), last)
	took.(prometheus.ExemplarObserver).ObserveWithExemplar(1.5, prometheus.Labels{"trace_id": "abc"})
	first.WithLabelValues("a").Inc()
	first.WithLabelValues("b").Add(0.5)
	return r
}

// What is written is what expfmt writes of all that is gathered, and can be read.
func TestS3WhatIsWrittenIsWhatIsGathered(t *testing.T) {
	values := rapid.OneOf(rapid.Float64Range(-1, 5), rapid.SampledFrom([]float64{0, 1, math.Inf(1), 1e300, 1e-9, 12345678}))
	runs := rapid.OneOf(rapid.Float64Range(0, 1e-4), rapid.Float64Range(0, 100))
	names := rapid.SampledFrom([]string{"f", `a "quoted"\ one`, "two\nlines", "größe", ""})
	rapid.Check(t, func(t *rapid.T) {
		var subjects []subject
		for n := range rapid.SampledFrom([]int{0, 1, 3, chunkSize, chunkSize + 1, 3 * chunkSize}).Draw(t, "subjects") {
			s := subject{name: fmt.Sprintf("%04d %s", n, names.Draw(t, "name")), queued: values.Draw(t, "queued"), calls: values.Draw(t, "calls")}
			s.since = rapid.SampledFrom([]time.Time{{}, time.Unix(12, 34), time.Unix(1<<31, 0)}).Draw(t, "since")
			s.reasons = []string{"a", "b", "c"}[:rapid.IntRange(0, 3).Draw(t, "reasons")]
			if observed := rapid.SliceOfN(runs, 0, 9).Draw(t, "runs"); len(observed) > 0 {
				s.runs = new(Histogram)
				for _, v := range observed {
					s.runs.Observe(v)
				}
			}
			subjects = append(subjects, s)
		}
		r := registryOf(subjects)
		families, err := r.Gather()
		if err != nil {
			t.Fatal(err)
		}
		reading, err := r.Read()
		if err != nil {
			t.Fatal(err)
		}
		for _, format := range Formats() {
			var got, want bytes.Buffer
			if err := reading.Write(&got, format, nil); err != nil {
				t.Fatalf("%s: %v", format, err)
			}
			encoder := expfmt.NewEncoder(&want, format)
			for _, f := range families {
				if err := encoder.Encode(f); err != nil {
					t.Fatal(err)
				}
			}
			_ = encoder.(expfmt.Closer).Close()
			if diff := cmp.Diff(want.String(), got.String()); diff != "" {
				t.Fatalf("%s (-want +got):\n%s", format, diff)
			}
			if format.FormatType() == expfmt.TypeTextPlain {
				parser := expfmt.NewTextParser(model.LegacyValidation)
				if parsed, err := parser.TextToMetricFamilies(&got); err != nil || len(parsed) != len(families) {
					t.Fatalf("of %d families %d can be read: %v", len(families), len(parsed), err)
				}
			}
		}
	})
}

func TestOnlyWhatIsWantedIsWritten(t *testing.T) {
	reading, err := registryOf([]subject{{name: "f", queued: 3}}).Read()
	if err != nil {
		t.Fatal(err)
	}
	var got strings.Builder
	wanted := func(name string) bool { return name == "windlass_z" || name == "windlass_m_queued" }
	if err := reading.Write(&got, expfmt.FmtText, wanted); err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(got.String(), "# TYPE"); n != 2 || !strings.Contains(got.String(), `windlass_m_queued{name="f",zone="zürich"} 3`) {
		t.Errorf("written is\n%s", got.String())
	}
}

func TestRegistrationsThatContradictAreRefused(t *testing.T) {
	r := registryOf(nil)
	if err := r.Register(callsDecl.Vec()); err == nil {
		t.Error("two collectors tell of the same series")
	}
}

// short is a connection that breaks.
type short struct{ left int }

var errBroke = errors.New("it broke")

func (s *short) Write(p []byte) (int, error) {
	if s.left -= len(p); s.left < 0 {
		return 0, errBroke
	}
	return len(p), nil
}

// Who has gone costs no more work.
func TestWritingEndsWhenTheReaderHasGone(t *testing.T) {
	asked := 0
	c := NewCollector([]Series[int]{{queuedDecl.Declaration, func(row *int, tell Tell) {
		asked++
		tell(Sample{Labels: Labels{"z", fmt.Sprint(*row)}})
	}}}, func() []int { return make([]int, 100*chunkSize) })
	r := NewRegistry()
	r.MustRegister(c)
	reading, err := r.Read()
	if err != nil {
		t.Fatal(err)
	}
	if err := reading.Write(&short{left: 1000}, expfmt.FmtText, nil); !errors.Is(err, errBroke) {
		t.Errorf("the error is %v", err)
	}
	if asked > 2*chunkSize+1 {
		t.Errorf("%d rows were told", asked)
	}
}

func TestACollectorThatPanicsFailsTheReading(t *testing.T) {
	r := NewRegistry()
	r.MustRegister(NewCollector([]Series[int]{{queuedDecl.Declaration, nil}}, func() []int { panic("no rows") }))
	if _, err := r.Read(); err == nil || !strings.Contains(err.Error(), "no rows") {
		t.Errorf("the error is %v", err)
	}
}

func TestWhatIsUnregisteredIsNotRead(t *testing.T) {
	r, c, last := NewRegistry(), collectorOf([]subject{{name: "f"}}), lastDecl.New()
	r.MustRegister(c, last)
	if !r.Unregister(c) || !r.Unregister(last) {
		t.Fatal("it was not registered")
	}
	if reading, err := r.Read(); err != nil || len(reading.families)+len(reading.ordinary) > 0 {
		t.Errorf("read is %v, %v", reading, err)
	}
}

func TestHistogramsAreNotMadeOfRows(t *testing.T) {
	defer func() {
		if recover() == nil {
			t.Error("it was taken")
		}
	}()
	NewCollector([]Series[int]{{Declaration: tookDecl.Declaration}}, nil)
}

// Scrapers share a reading.
func TestManyMayWriteAReadingAtATime(t *testing.T) {
	reading, err := registryOf([]subject{{name: "f", queued: 3, reasons: []string{"a"}}}).Read()
	if err != nil {
		t.Fatal(err)
	}
	for _, format := range Formats() {
		var texts [4]bytes.Buffer
		var writing sync.WaitGroup
		for i := range texts {
			writing.Go(func() { _ = reading.Write(&texts[i], format, nil) })
		}
		writing.Wait()
		for i := range texts {
			if texts[i].Len() == 0 || !bytes.Equal(texts[i].Bytes(), texts[0].Bytes()) {
				t.Errorf("%s: one wrote\n%s\nand another\n%s", format, &texts[0], &texts[i])
			}
		}
	}
}
