package controller

import (
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/windlass-dev/windlass/api/v1alpha1"
	"github.com/windlass-dev/windlass/api/wellknown"
)

// classes say what functions get of what they ask for in spec.template.scheduling.
type classes struct {
	// ordered says that there are node agents. Without them nothing of it has an effect.
	ordered bool
	// latencyCritical are the namespaces whose functions may have that class.
	latencyCritical []string
}

// classCondition reports whether the function has the class and the slice that it asks for. The
// condition has no status where there is nothing to say: only LatencyCritical is a right, and the
// rest counts wherever there are node agents. A function that does not get what it asks for is
// served all the same, as one of class Standard.
func classCondition(f *v1alpha1.Function, c classes) metav1.Condition {
	s := &f.Spec.Template.Scheduling
	switch {
	case s.Asked() == "":
		return metav1.Condition{}
	case !c.ordered:
		return metav1.Condition{Status: metav1.ConditionFalse, Reason: v1alpha1.ReasonNodeSchedulingOff,
			Message: fmt.Sprintf("%s has no effect, because there are no node agents; ask the administrator to set nodeAgent.enabled=true "+
				"in the chart's values, or remove spec.template.scheduling", s.Asked())}
	case s.Class != v1alpha1.ClassLatencyCritical:
		return metav1.Condition{}
	case wellknown.Allows(c.latencyCritical, f.Namespace):
		return metav1.Condition{Status: metav1.ConditionTrue, Reason: v1alpha1.ReasonPermitted,
			Message: fmt.Sprintf("functions of the namespace %s may be LatencyCritical", f.Namespace)}
	}
	return metav1.Condition{Status: metav1.ConditionFalse, Reason: v1alpha1.ReasonNotPermitted,
		Message: fmt.Sprintf("functions of the namespace %s may not be LatencyCritical, so this one counts as Standard; write class: Standard, "+
			"or ask the administrator to add the namespace to nodeAgent.latencyCriticalNamespaces in the chart's values", f.Namespace)}
}
