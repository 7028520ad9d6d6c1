package catalog

import (
	"fmt"
	"reflect"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/windlass-dev/windlass/api/v1alpha1"
)

func template(cpu, memory string) *v1alpha1.FunctionTemplate {
	return &v1alpha1.FunctionTemplate{Command: []string{"./server"}, Resources: v1alpha1.Resources{Requests: corev1.ResourceList{
		corev1.ResourceCPU: resource.MustParse(cpu), corev1.ResourceMemory: resource.MustParse(memory),
	}}}
}

func sameMap(a, b corev1.ResourceList) bool {
	return reflect.ValueOf(a).Pointer() == reflect.ValueOf(b).Pointer()
}

func TestEqualListsOfResourcesAreOne(t *testing.T) {
	var lists Lists
	a, b, c := template("100m", "128Mi"), template("0.1", "128Mi"), template("100m", "129Mi")
	for _, x := range []*v1alpha1.FunctionTemplate{a, b, c} {
		lists.Share(x)
	}
	if !sameMap(a.Resources.Requests, b.Resources.Requests) {
		t.Error("equal lists are two")
	}
	if sameMap(a.Resources.Requests, c.Resources.Requests) || c.Resources.Requests.Memory().String() != "129Mi" {
		t.Errorf("another list became %v", c.Resources.Requests)
	}
	if a.Resources.Limits != nil {
		t.Errorf("no limits became %v", a.Resources.Limits)
	}
}

func TestListsAreForgottenBeforeTheyAreMany(t *testing.T) {
	var lists Lists
	for i := range 3 * mostLists {
		x := template(fmt.Sprintf("%dm", i+1), "1Mi")
		if lists.Share(x); len(lists.known) > mostLists || x.Resources.Requests.Cpu().MilliValue() != int64(i+1) {
			t.Fatalf("%d lists are known, and the template has %v", len(lists.known), x.Resources.Requests)
		}
	}
}

func TestAFunctionSharesTheTemplateOfItsRevisionOnly(t *testing.T) {
	old, now := &v1alpha1.FunctionRevision{}, &v1alpha1.FunctionRevision{}
	old.Spec.Template, now.Spec.Template = *template("1", "1Mi"), *template("2", "1Mi")
	revisions := []*v1alpha1.FunctionRevision{old, now}
	f := &v1alpha1.Function{}
	f.Spec.Template = *template("2", "1Mi")
	ShareTemplate(f, revisions)
	if !sameMap(f.Spec.Template.Resources.Requests, now.Spec.Template.Resources.Requests) {
		t.Error("it has a template of its own")
	}
	f.Spec.Template = *template("3", "1Mi")
	if ShareTemplate(f, revisions); f.Spec.Template.Resources.Requests.Cpu().Value() != 3 {
		t.Errorf("it has the template of a revision that differs: %v", f.Spec.Template.Resources.Requests)
	}
}
