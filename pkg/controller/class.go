package controller

import (
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/windlass-dev/windlass/api/v1alpha1"
)

// classCondition reports whether the function has the class that it asks for. Only LatencyCritical is
// a right; the condition has no status for the other classes. A function whose namespace may not
// have it is served all the same, as one of class Standard.
func classCondition(f *v1alpha1.Function, latencyCritical []string) metav1.Condition {
	switch {
	case f.Spec.Template.Scheduling.Class != v1alpha1.ClassLatencyCritical:
		return metav1.Condition{}
	case v1alpha1.MayBeLatencyCritical(f.Namespace, latencyCritical):
		return metav1.Condition{Status: metav1.ConditionTrue, Reason: v1alpha1.ReasonPermitted,
			Message: fmt.Sprintf("functions of the namespace %s may be LatencyCritical", f.Namespace)}
	}
	return metav1.Condition{Status: metav1.ConditionFalse, Reason: v1alpha1.ReasonNotPermitted,
		Message: fmt.Sprintf("functions of the namespace %s may not be LatencyCritical, so this one counts as Standard; write class: Standard, "+
			"or ask the administrator to add the namespace to nodeAgent.latencyCriticalNamespaces in the chart's values", f.Namespace)}
}
