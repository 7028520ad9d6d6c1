package kube

import (
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/windlass-dev/windlass/api/v1alpha1"
)

// slimmed is a Function with that code as an informer with the transform has it.
func slimmed(t *testing.T, config Config, code string) *v1alpha1.Function {
	t.Helper()
	fn := function(1, func(fn *v1alpha1.Function) {
		fn.Spec.Template.Code.Inline = code
		fn.Annotations = map[string]string{lastApplied: code, "team": "a"}
	})
	got, err := config.Transform()(fn)
	if err != nil {
		t.Fatal(err)
	}
	return got.(*v1alpha1.Function)
}

func TestS17AGatewayKeepsNoCode(t *testing.T) {
	code := strings.Repeat("x", v1alpha1.MaxInlineCode)
	fn := slimmed(t, Config{}, code)
	if n := len(fn.Spec.Template.Code.Inline); n == 0 || n > 100 {
		t.Errorf("%d bytes of code are kept, want a digest", n)
	}
	if fn.Annotations[lastApplied] != "" || fn.Annotations["team"] != "a" {
		t.Errorf("annotations %v", fn.Annotations)
	}
	if other := slimmed(t, Config{}, code[1:]); other.Spec.Template.Code.Inline == fn.Spec.Template.Code.Inline {
		t.Error("a change of the code is none for a gateway")
	}
	s := newSource()
	s.functionChanged(fn)
	if served(s) == nil {
		t.Error("a function without its code is not served")
	}
	// What is not valid stays so.
	if long := slimmed(t, Config{}, code+"x"); len(long.Spec.Template.Code.Inline) != len(code)+1 {
		t.Error("code that is too long looks as if it were not")
	}
}

func TestAGatewayKeepsNoCodeOfRevisions(t *testing.T) {
	code := strings.Repeat("x", v1alpha1.MaxInlineCode)
	s := newSource()
	s.functionChanged(function(1, latest(1), traffic(1, 100)))
	r := revision(1)
	r.Spec.Template.Code.Inline = code
	got, err := Config{}.Transform()(r)
	if err != nil {
		t.Fatal(err)
	}
	s.revisionChanged(got)
	unit := entry(s).Routes[0].Unit
	if n := len(unit.Spec.Template.Code.Inline); n == 0 || n > 100 {
		t.Errorf("%d bytes of code are kept, want a digest", n)
	}
	if unit.Revision() != r.Label() {
		t.Errorf("revision %s, want %s: it must be that of the schedulers", unit.Revision(), r.Label())
	}
}

func TestS17ASchedulerKeepsTheCodeOnce(t *testing.T) {
	fn := slimmed(t, Config{Code: true}, "def handle")
	if fn.Spec.Template.Code.Inline != "def handle" || fn.Annotations[lastApplied] != "" || fn.Annotations["team"] != "a" {
		t.Errorf("code %q, annotations %v", fn.Spec.Template.Code.Inline, fn.Annotations)
	}
}

// A manifest that a local Windlass has printed may bring it along.
func TestTheStampOfLocalCodeMeansNothingInACluster(t *testing.T) {
	fn, r := function(1), revision(1)
	plain := fn.Revision()
	for _, object := range []metav1.Object{fn, r} {
		object.SetAnnotations(map[string]string{v1alpha1.AnnotationCodeStamp: "1a2b"})
		if _, err := (Config{Code: true}).Transform()(object); err != nil {
			t.Fatal(err)
		}
	}
	if fn.Revision() != plain || len(r.Annotations) > 0 {
		t.Errorf("the annotations are %v and %v", fn.Annotations, r.Annotations)
	}
}
