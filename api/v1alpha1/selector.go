package v1alpha1

import (
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Matches tells whether a namespace with those labels is picked. A requirement that means
// nothing picks none.
func (s *NamespaceSelector) Matches(namespace map[string]string) bool {
	for key, value := range s.MatchLabels {
		if got, has := namespace[key]; !has || got != value {
			return false
		}
	}
	for i := range s.MatchExpressions {
		if !s.MatchExpressions[i].holds(namespace) {
			return false
		}
	}
	return true
}

func (r *NamespaceRequirement) holds(namespace map[string]string) bool {
	value, has := namespace[r.Key]
	switch r.Operator {
	case metav1.LabelSelectorOpIn:
		return has && slices.Contains(r.Values, value)
	case metav1.LabelSelectorOpNotIn:
		return !has || !slices.Contains(r.Values, value)
	case metav1.LabelSelectorOpExists:
		return has
	case metav1.LabelSelectorOpDoesNotExist:
		return !has
	}
	return false
}
