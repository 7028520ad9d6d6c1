package v1alpha1

import (
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

var (
	tolerationOperators = []corev1.TolerationOperator{corev1.TolerationOpExists, corev1.TolerationOpEqual}
	taintEffects        = []corev1.TaintEffect{corev1.TaintEffectNoSchedule, corev1.TaintEffectPreferNoSchedule, corev1.TaintEffectNoExecute}
)

const (
	labelKeyRule   = "must be a name, or a domain, / and a name"
	labelValueRule = "must be at most 63 letters, digits, '-', '_' and '.', with a letter or digit at both ends"
)

// validatePlacement checks what the API server would refuse in each pod, when calls wait for it.
func validatePlacement(at *field.Path, p *Placement) field.ErrorList {
	errs := validateReference(at.Child("runtimeClassName"), p.RuntimeClassName, "a RuntimeClass", "gvisor")
	errs = append(errs, validateReference(at.Child("priorityClassName"), p.PriorityClassName, "a PriorityClass", "batch")...)
	selector := at.Child("nodeSelector")
	for _, key := range slices.Sorted(maps.Keys(p.NodeSelector)) {
		if len(validation.IsQualifiedName(key)) > 0 {
			errs = append(errs, field.Invalid(selector, key, labelKeyRule+"; write for example disk: ssd"))
		}
		if value := p.NodeSelector[key]; len(validation.IsValidLabelValue(value)) > 0 {
			errs = append(errs, field.Invalid(selector.Key(key), value, labelValueRule+"; write for example disk: ssd"))
		}
	}
	for i := range p.Tolerations {
		errs = append(errs, validateToleration(at.Child("tolerations").Index(i), &p.Tolerations[i])...)
	}
	return errs
}

func validateToleration(at *field.Path, t *corev1.Toleration) field.ErrorList {
	const example = "; write for example {key: spot, operator: Exists}"
	var errs field.ErrorList
	exists := t.Operator == corev1.TolerationOpExists
	switch {
	case t.Operator != "" && !slices.Contains(tolerationOperators, t.Operator):
		errs = append(errs, field.NotSupported(at.Child("operator"), t.Operator, tolerationOperators))
	case t.Key == "" && !exists:
		errs = append(errs, field.Required(at.Child("key"), "only the operator Exists goes without a key"+example))
	case t.Key != "" && len(validation.IsQualifiedName(t.Key)) > 0:
		errs = append(errs, field.Invalid(at.Child("key"), t.Key, labelKeyRule+example))
	}
	switch {
	case exists && t.Value != "":
		errs = append(errs, field.Forbidden(at.Child("value"), "the operator Exists takes any value; remove value, or write operator: Equal"))
	case len(validation.IsValidLabelValue(t.Value)) > 0:
		errs = append(errs, field.Invalid(at.Child("value"), t.Value, labelValueRule+"; write for example {key: spot, value: batch}"))
	}
	switch {
	case t.Effect != "" && !slices.Contains(taintEffects, t.Effect):
		errs = append(errs, field.NotSupported(at.Child("effect"), t.Effect, taintEffects))
	case t.TolerationSeconds != nil && t.Effect != corev1.TaintEffectNoExecute:
		errs = append(errs, field.Forbidden(at.Child("tolerationSeconds"), "only the effect NoExecute has a time; add effect: NoExecute, or remove tolerationSeconds"))
	}
	return errs
}
