//go:build apiserver

package controller

import (
	"encoding/json"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/windlass-dev/windlass/api/v1alpha1"
)

func TestScaleSetsTheMinimum(t *testing.T) {
	c := newClient(t)
	f := &v1alpha1.Function{Spec: v1alpha1.FunctionSpec{Template: v1alpha1.FunctionTemplate{Image: "a"}}}
	f.Name, f.Namespace = "f", newNamespace(t, c)
	if err := c.Create(t.Context(), f); err != nil {
		t.Fatal(err)
	}
	f.Status.Instances.Ready, f.Status.Selector = 4, "a=b"
	if err := c.Status().Update(t.Context(), f); err != nil {
		t.Fatal(err)
	}
	scale := &autoscalingv1.Scale{}
	if err := c.SubResource("scale").Get(t.Context(), f, scale); err != nil {
		t.Fatal(err)
	}
	if scale.Status.Replicas != 4 || scale.Status.Selector != "a=b" || scale.Spec.Replicas != 0 {
		t.Errorf("scale is %+v", scale)
	}
	scale.Spec.Replicas = 2
	if err := c.SubResource("scale").Update(t.Context(), f, client.WithSubResourceBody(scale)); err != nil {
		t.Fatal(err)
	}
	if err := c.Get(t.Context(), client.ObjectKeyFromObject(f), f); err != nil {
		t.Fatal(err)
	}
	if f.Spec.Scaling.MinInstances != 2 {
		t.Errorf("min is %d", f.Spec.Scaling.MinInstances)
	}
}

// table is what kubectl get shows of an object.
func table(t *testing.T, resource, namespace, name string) (columns []metav1.TableColumnDefinition, cells []any) {
	t.Helper()
	config := apiServer(t)
	config.APIPath = "/apis"
	config.GroupVersion = &schema.GroupVersion{Group: v1alpha1.GroupName, Version: "v1alpha1"}
	config.NegotiatedSerializer = serializer.NewCodecFactory(newClient(t).Scheme()).WithoutConversion()
	config.AcceptContentTypes = "application/json;as=Table;v=v1;g=meta.k8s.io"
	rc, err := rest.RESTClientFor(config)
	if err != nil {
		t.Fatal(err)
	}
	text, err := rc.Get().NamespaceIfScoped(namespace, namespace != "").Resource(resource).Name(name).
		SetHeader("Accept", config.AcceptContentTypes).DoRaw(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var table metav1.Table
	if err := json.Unmarshal(text, &table); err != nil {
		t.Fatal(err)
	}
	return table.ColumnDefinitions, table.Rows[0].Cells
}

func TestColumnsOfFunctions(t *testing.T) {
	c := newClient(t)
	f := &v1alpha1.Function{Spec: v1alpha1.FunctionSpec{Template: v1alpha1.FunctionTemplate{Image: "a/b:1"}}}
	f.Name, f.Namespace = "f", newNamespace(t, c)
	if err := c.Create(t.Context(), f); err != nil {
		t.Fatal(err)
	}
	f.Status = statusIn(given(func(in *input) {
		in.function, in.revisions = f, []*v1alpha1.FunctionRevision{revisionOf(f)}
		in.units = map[string]facts{"f-00001": {generation: 1, created: 2, started: true}}
	}))
	if err := c.Status().Update(t.Context(), f); err != nil {
		t.Fatal(err)
	}
	columns, cells := table(t, "functions", f.Namespace, "f")
	got := make(map[string]any)
	var narrow []string
	for i, column := range columns {
		got[column.Name] = cells[i]
		if column.Priority == 0 {
			narrow = append(narrow, column.Name)
		}
	}
	delete(got, "Age")
	want := map[string]any{
		"Name": "f", "Ready": "True", "Reason": "Started", "Revision": "f-00001", "Instances": 2.0, "Image": "a/b:1", "Runtime": nil, "URL": "https://fn.example.com/function/f." + f.Namespace,
	}
	for name := range got {
		if n, ok := got[name].(int64); ok {
			got[name] = float64(n)
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]string{"Name", "Ready", "Reason", "Revision", "Instances", "Age"}, narrow); diff != "" {
		t.Error(diff)
	}
}

func TestColumnsOfRuntimes(t *testing.T) {
	c := newClient(t)
	r := manifest(t, v1alpha1.KindClusterRuntime, "columns", `{image: a/b:1, fileExtension: py, warmPools: [{name: small, size: 3}]}`)
	makeRuntime(t, c, r)
	columns, cells := table(t, "clusterruntimes", "", "columns")
	var got []string
	for i, column := range columns {
		if column.Name != "Age" {
			got = append(got, fmt.Sprintf("%s=%v", column.Name, cells[i]))
		}
	}
	want := []string{"Name=columns", "Ready=Unknown", "Reason=Pending", "Image=a/b:1", "Protocol=LambdaRuntime", "Spare=<nil>", "Wanted=<nil>", "Contract=v1"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestARevisionDoesNotChange(t *testing.T) {
	c := newClient(t)
	f := &v1alpha1.Function{Spec: v1alpha1.FunctionSpec{Template: v1alpha1.FunctionTemplate{Image: "a/b:1"}}}
	f.Name, f.Namespace = "f", newNamespace(t, c)
	if err := c.Create(t.Context(), f); err != nil {
		t.Fatal(err)
	}
	v1alpha1.Default(f)
	r := v1alpha1.NewRevision(f)
	if err := c.Create(t.Context(), r); err != nil {
		t.Fatal(err)
	}
	if r.Name != "f-00001" || !r.Of(f) || !r.Is(f) {
		t.Errorf("revision %s is not that of its function: %+v", r.Name, r)
	}
	changed := r.DeepCopy()
	changed.Spec.Template.Image = "a/b:2"
	want := []string{`spec: Invalid value: "object": a revision does not change; change spec.template of the Function, which makes another one`}
	if diff := cmp.Diff(want, causes(t, c.Update(t.Context(), changed))); diff != "" {
		t.Error(diff)
	}
	r.Spec.Instances = 3
	if err := c.Update(t.Context(), r); err != nil {
		t.Errorf("the number of instances cannot change: %v", err)
	}
}
