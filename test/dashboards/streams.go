package main

import (
	"iter"
	"math"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/windlass-dev/windlass/api/v1alpha1"
	"github.com/windlass-dev/windlass/test/lab"
)

// stream is calls to one function, whose rate goes up and down.
type stream struct {
	namespace, function string
	// queries are those of calls, by turns.
	queries []string
	// Calls in a second: at least low, at most high, once in every period. A pulse is
	// high for a tenth of it and low for the rest.
	low, high float64
	period    time.Duration
	pulse     bool
	// bursts are calls that come at once.
	bursts []burst
	// spec changes the function; nil if there is no such function.
	spec func(*v1alpha1.FunctionSpec)
}

// burst is calls that come at once, so long after the beginning of what is shown.
type burst struct {
	at    time.Duration
	calls int
}

const (
	// before is load that is not shown: a counter's first value is no increase.
	before = 45 * time.Second
	// shown is load that is shown. It ends when the second burst waits.
	shown = 176 * time.Second
)

// bursting is the function that the dashboard of one function shows.
const bursting = "shop/checkout"

// warm is a Runtime with spare instances.
const warm = "python3.13-warm"

// of repeats a query so often, for most calls to go well.
func of(n int, query string, others ...string) []string {
	for range n {
		others = append(others, query)
	}
	return others
}

// streams are loads of kinds that decisions tell apart, and functions that fail in every way.
var streams = []stream{
	{
		namespace: "shop", function: "checkout", queries: of(38, "ms=180", "do=error", "do=exit"), low: 6, high: 16, period: 50 * time.Second,
		bursts: []burst{{-38 * time.Second, 600}, {35 * time.Second, 900}, {167 * time.Second, 700}},
		spec: func(s *v1alpha1.FunctionSpec) {
			s.Template.Env = []v1alpha1.EnvVar{{Name: "LAB_START", Value: "1200ms"}}
			s.Scaling.MaxInstances, s.Calls = new(int32(40)), v1alpha1.Calls{MaxInFlight: 550}
			s.Scaling.ScaleDown.IdleTimeout.Duration = 20 * time.Second
			requests(s, "500m")
		},
	},
	{namespace: "shop", function: "cart", queries: of(1, "ms=8"), low: 25, high: 25, period: time.Minute, spec: func(s *v1alpha1.FunctionSpec) { s.Scaling.MinInstances = 2 }},
	{namespace: "shop", function: "search", queries: of(1, "ms=45"), low: 6, high: 30, period: 80 * time.Second, spec: func(*v1alpha1.FunctionSpec) {}},
	{namespace: "shop", function: "receipt", queries: of(1, ""), high: 40, period: 43 * time.Second, pulse: true, spec: func(s *v1alpha1.FunctionSpec) {
		s.Template.RuntimeRef.Name, s.Template.Handler, s.Template.Code = warm, "main.handler", &v1alpha1.Code{Inline: "def handler(event, context): return 'done'"}
		s.Template.Image, s.Template.Protocol = "", v1alpha1.ProtocolLambdaRuntime
	}},
	{
		namespace: "media", function: "thumbnails", queries: of(1, "ms=120"), high: 30, period: 37 * time.Second, pulse: true,
		bursts: []burst{{100 * time.Second, 150}}, spec: func(s *v1alpha1.FunctionSpec) { slowStart(s, "600ms") },
	},
	{
		namespace: "media", function: "render", queries: of(1, "ms=600"), low: 0.5, high: 2, period: 30 * time.Second,
		bursts: []burst{{-25 * time.Second, 20}, {56 * time.Second, 120}, {130 * time.Second, 60}},
		spec: func(s *v1alpha1.FunctionSpec) {
			slowStart(s, "2s")
			requests(s, "2")
		},
	},
	{namespace: "media", function: "convert", queries: of(4, "ms=90", "do=exit"), low: 1, high: 3, period: 40 * time.Second, spec: func(*v1alpha1.FunctionSpec) {}},
	{namespace: "media", function: "preview", queries: of(1, ""), high: 1, period: 60 * time.Second, spec: func(s *v1alpha1.FunctionSpec) { s.Template.Image = lab.ImageMissing }},
	{namespace: "reports", function: "daily", queries: of(4, "ms=250", "do=error"), low: 0.5, high: 5, period: 70 * time.Second, spec: func(*v1alpha1.FunctionSpec) {}},
	{namespace: "reports", function: "mail", queries: of(1, "ms=30"), low: 3, high: 14, period: 45 * time.Second, spec: func(s *v1alpha1.FunctionSpec) {
		s.Calls = v1alpha1.Calls{Rate: v1alpha1.Rate{Requests: 10}}
	}},
	{namespace: "reports", function: "export", queries: of(1, "ms=50"), low: 0.5, high: 2, period: 40 * time.Second, spec: func(s *v1alpha1.FunctionSpec) { slowStart(s, "crash") }},
	{namespace: "reports", function: "ledger", queries: of(1, ""), low: 0.1, high: 0.5, period: 60 * time.Second, spec: func(s *v1alpha1.FunctionSpec) {
		slowStart(s, "silent")
		s.Template.StartupTimeout.Duration = 5 * time.Second
	}},
	{namespace: "reports", function: "archive", queries: of(1, "ms=50"), high: 3, period: 75 * time.Second, pulse: true, spec: func(s *v1alpha1.FunctionSpec) { requests(s, "100") }},
	// A name that somebody mistyped.
	{namespace: "shop", function: "chekout", queries: of(1, ""), high: 3, period: 55 * time.Second},
}

// slowStart has a function start in its own way: in so long, or not at all.
func slowStart(spec *v1alpha1.FunctionSpec, how string) {
	spec.Template.Env = []v1alpha1.EnvVar{{Name: "LAB_START", Value: how}}
}

// requests has a function request so much CPU.
func requests(spec *v1alpha1.FunctionSpec, cpu string) {
	spec.Template.Resources.Requests = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(cpu)}
}

// rate is how many calls a second are due, after so long.
func (s stream) rate(after time.Duration) float64 {
	phase := math.Mod(after.Seconds(), s.period.Seconds()) / s.period.Seconds()
	if s.pulse {
		if phase >= 0.4 && phase < 0.5 {
			return s.high
		}
		return s.low
	}
	return s.low + (s.high-s.low)*(1-math.Cos(2*math.Pi*phase))/2
}

// arrivals are when the stream's calls are due, of which the shown ones begin after a
// lead.
func (s stream) arrivals(lead time.Duration) iter.Seq[time.Duration] {
	const step = 50 * time.Millisecond
	return func(yield func(time.Duration) bool) {
		due := 0.0
		for at := step; at < lead+shown; at += step {
			for due += s.rate(at-lead+before) * step.Seconds(); due >= 1; due-- {
				if !yield(at) {
					return
				}
			}
		}
	}
}

// Instances leave soon, so that some minutes show them come and go.
var leaving = v1alpha1.Scaling{
	ScaleDown: v1alpha1.ScaleDown{IdleTimeout: v1alpha1.Duration{Duration: 12 * time.Second}, LastInstanceIdleTimeout: v1alpha1.Duration{Duration: 18 * time.Second}},
}

// manifest is the function that the stream calls.
func (s stream) manifest() *v1alpha1.Function {
	fn := &v1alpha1.Function{ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: s.function}}
	fn.Spec.Template.Image, fn.Spec.Scaling = lab.ImageFunction, leaving
	fn.Spec.Template.Timeout.Duration, fn.Spec.Template.StartupTimeout.Duration = 10*time.Second, 15*time.Second
	s.spec(&fn.Spec)
	v1alpha1.Default(fn)
	return fn
}

// pool is the Runtime with spare instances.
func pool() *v1alpha1.ClusterRuntime {
	rt := &v1alpha1.ClusterRuntime{ObjectMeta: metav1.ObjectMeta{Name: warm}}
	rt.Spec.Image, rt.Spec.Protocol, rt.Spec.FileExtension = lab.ImageFunction, v1alpha1.ProtocolLambdaRuntime, "py"
	rt.Spec.WarmPools = []v1alpha1.WarmPool{{Name: "small", Size: 4}}
	return rt
}
