package kube

import (
	"log/slog"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/windlass-dev/windlass/api/v1alpha1"
	"github.com/windlass-dev/windlass/pkg/invocation"
	"github.com/windlass-dev/windlass/pkg/rollout"
)

var key = invocation.FunctionKey{Namespace: "shop", Name: "hello"}

func function(generation int64, change ...func(*v1alpha1.Function)) *v1alpha1.Function {
	fn := &v1alpha1.Function{}
	fn.Namespace, fn.Name, fn.UID, fn.Generation = key.Namespace, key.Name, types.UID("u-1"), generation
	fn.Spec.Template.RuntimeRef.Name, fn.Spec.Template.Handler = "ruby", "main.handle"
	fn.Spec.Template.Code = &v1alpha1.Code{Inline: "def handle"}
	for _, c := range change {
		c(fn)
	}
	return fn
}

func newSource() *Source { return New(Config{}, Deps{Log: slog.New(slog.DiscardHandler)}) }

// served is the function that the catalog holds, or nil.
func served(s *Source) *v1alpha1.Function {
	if e := entry(s); e != nil {
		return e.Function
	}
	return nil
}

// entry is what the catalog holds of it, or nil.
func entry(s *Source) *rollout.Entry {
	e, _ := s.Catalog().Get(key)
	return e
}

func TestAFunctionIsServedWithItsDefaults(t *testing.T) {
	s := newSource()
	s.functionChanged(function(1))
	got := served(s)
	if got == nil || got.Spec.Template.Concurrency != v1alpha1.DefaultConcurrency || got.Spec.Template.Protocol != v1alpha1.ProtocolLambdaRuntime {
		t.Fatalf("served: %+v", got)
	}
}

func TestWhatAloneChangesTheStatusIsNoChange(t *testing.T) {
	s := newSource()
	s.functionChanged(function(1))
	before := entry(s)
	s.functionChanged(function(1, func(fn *v1alpha1.Function) { fn.Status.Instances.Ready = 5 }))
	if entry(s) != before {
		t.Error("the catalog was told of a change of status")
	}
	s.functionChanged(function(2, func(fn *v1alpha1.Function) { fn.Spec.Template.Concurrency = 7 }))
	if got := served(s); got.Spec.Template.Concurrency != 7 {
		t.Errorf("concurrency %d after a change of the spec", got.Spec.Template.Concurrency)
	}
}

func TestAFunctionThatIsBeingDeletedIsNotServed(t *testing.T) {
	s := newSource()
	s.functionChanged(function(1))
	now := metav1.NewTime(time.Unix(1, 0))
	s.functionChanged(function(2, func(fn *v1alpha1.Function) { fn.DeletionTimestamp = &now }))
	if served(s) != nil {
		t.Error("it is served still")
	}
	s.functionGone(function(2))
	s.functionChanged(function(1, func(fn *v1alpha1.Function) { fn.UID = "u-2" }))
	if got := served(s); got == nil || got.UID != "u-2" {
		t.Errorf("its successor is not served: %+v", got)
	}
}

func TestAnInvalidFunctionWithoutRevisionsIsNotServed(t *testing.T) {
	s := newSource()
	s.functionChanged(function(1))
	s.functionChanged(function(2, withoutHandler))
	if served(s) != nil {
		t.Error("it is served without a handler")
	}
	s.functionChanged(function(3))
	if served(s) == nil {
		t.Error("it is not served after it was corrected")
	}
}

func withoutHandler(fn *v1alpha1.Function) { fn.Spec.Template.Handler = "" }

func TestARuntimeThatComesLaterSaysTheProtocol(t *testing.T) {
	s := newSource()
	s.functionChanged(function(1))
	rt := &v1alpha1.ClusterRuntime{}
	rt.Name, rt.Spec.Image, rt.Spec.Protocol = "ruby", "ruby:3", v1alpha1.ProtocolHTTP
	s.runtimeChanged(rt)
	if got := served(s).Spec.Template.Protocol; got != v1alpha1.ProtocolHTTP {
		t.Errorf("protocol %s, want that of the runtime", got)
	}
	if got, known := s.Get("ruby"); !known || got.Spec.Image != "ruby:3" {
		t.Errorf("runtime %+v", got)
	}
	s.functionChanged(function(2, func(fn *v1alpha1.Function) { fn.Spec.Template.Protocol = v1alpha1.ProtocolLambdaRuntime }))
	if got := served(s).Spec.Template.Protocol; got != v1alpha1.ProtocolLambdaRuntime {
		t.Errorf("protocol %s, want that of the function", got)
	}
	s.runtimeGone(rt)
	if _, known := s.Get("ruby"); known {
		t.Error("a runtime that is gone is known still")
	}
}

func TestLabelsOfNamespacesAreKnown(t *testing.T) {
	s := newSource()
	if got := s.NamespaceLabels("team"); got != nil {
		t.Errorf("before it was read: %v", got)
	}
	team := namespaceMeta()
	team.Name = "team"
	s.namespaceChanged(team)
	if got := s.NamespaceLabels("team"); got == nil || len(got) != 0 {
		t.Errorf("without labels: %v", got)
	}
	labelled := team.DeepCopy()
	labelled.Labels = map[string]string{"size": "large"}
	s.namespaceChanged(labelled)
	if got := s.NamespaceLabels("team"); got["size"] != "large" {
		t.Errorf("with a label: %v", got)
	}
	s.namespaceGone(labelled)
	if got := s.NamespaceLabels("team"); got != nil {
		t.Errorf("after it was deleted: %v", got)
	}
}
