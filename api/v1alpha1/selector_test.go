package v1alpha1

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"pgregory.net/rapid"
)

// People write the selector as they write those of Kubernetes, so it picks the same.
func TestANamespaceSelectorPicksWhatKubernetesWould(t *testing.T) {
	key, value := rapid.SampledFrom([]string{"a", "b", "c"}), rapid.SampledFrom([]string{"", "x", "y", "z"})
	some := rapid.MapOfN(key, value, 0, 3)
	operators := rapid.SampledFrom([]metav1.LabelSelectorOperator{metav1.LabelSelectorOpIn, metav1.LabelSelectorOpNotIn, metav1.LabelSelectorOpExists, metav1.LabelSelectorOpDoesNotExist})
	picked := map[bool]int{}
	rapid.Check(t, func(t *rapid.T) {
		s, want := &NamespaceSelector{MatchLabels: some.Draw(t, "matchLabels")}, &metav1.LabelSelector{}
		want.MatchLabels = s.MatchLabels
		for range rapid.IntRange(0, 3).Draw(t, "requirements") {
			r := NamespaceRequirement{Key: key.Draw(t, "key"), Operator: operators.Draw(t, "operator")}
			if r.Operator == metav1.LabelSelectorOpIn || r.Operator == metav1.LabelSelectorOpNotIn {
				r.Values = rapid.SliceOfN(value, 1, 3).Draw(t, "values")
			}
			s.MatchExpressions = append(s.MatchExpressions, r)
			want.MatchExpressions = append(want.MatchExpressions, metav1.LabelSelectorRequirement{Key: r.Key, Operator: r.Operator, Values: r.Values})
		}
		selector, err := metav1.LabelSelectorAsSelector(want)
		if err != nil {
			t.Fatal(err)
		}
		namespace := some.Draw(t, "namespace")
		got := s.Matches(namespace)
		if got != selector.Matches(labels.Set(namespace)) {
			t.Fatalf("%s picks %v: %v", selector, namespace, got)
		}
		picked[got]++
	})
	if picked[true] == 0 || picked[false] == 0 {
		t.Errorf("picked and not picked: %v", picked)
	}
	if broken := (&NamespaceSelector{MatchExpressions: []NamespaceRequirement{{Key: "a", Operator: "Like"}}}); broken.Matches(map[string]string{"a": "x"}) {
		t.Error("an operator that nobody knows picks a namespace")
	}
}
