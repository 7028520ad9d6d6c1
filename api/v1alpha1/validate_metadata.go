package v1alpha1

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// Bounds of TemplateMetadata, inclusive.
const (
	MaxMetadata        = 32
	MaxAnnotationValue = 1024
)

// reservedDomains are those whose keys mean something to Windlass or to Kubernetes.
var reservedDomains = []string{GroupName, "kubernetes.io", "k8s.io"}

func validateMetadata(at *field.Path, m *TemplateMetadata) field.ErrorList {
	labels, annotations := at.Child("labels"), at.Child("annotations")
	errs := validateKeys(labels, m.Labels)
	errs = append(errs, validateKeys(annotations, m.Annotations)...)
	for _, key := range slices.Sorted(maps.Keys(m.Labels)) {
		if len(validation.IsValidLabelValue(m.Labels[key])) > 0 {
			errs = append(errs, field.Invalid(labels.Key(key), m.Labels[key],
				labelValueRule+"; write for example payments"))
		}
	}
	for _, key := range slices.Sorted(maps.Keys(m.Annotations)) {
		if n := len(m.Annotations[key]); n > MaxAnnotationValue {
			errs = append(errs, field.Invalid(annotations.Key(key), fmt.Sprintf("%d bytes", n),
				fmt.Sprintf("must be at most %d bytes; shorten it", MaxAnnotationValue)))
		}
	}
	return errs
}

func validateKeys(at *field.Path, entries map[string]string) field.ErrorList {
	var errs field.ErrorList
	if n := len(entries); n > MaxMetadata {
		errs = append(errs, field.Invalid(at, fmt.Sprintf("%d entries", n), fmt.Sprintf("must be at most %d; remove some", MaxMetadata)))
	}
	for _, key := range slices.Sorted(maps.Keys(entries)) {
		switch domain, _, prefixed := strings.Cut(key, "/"); {
		case len(validation.IsQualifiedName(key)) > 0:
			errs = append(errs, field.Invalid(at, key, labelKeyRule+"; write for example cost-center, or example.com/owner"))
		case prefixed && reserved(domain):
			errs = append(errs, field.Forbidden(at.Key(key),
				"keys of windlass.dev, kubernetes.io and k8s.io, and below, are not for functions; take one of your own, for example example.com/owner"))
		}
	}
	return errs
}

func reserved(domain string) bool {
	return slices.ContainsFunc(reservedDomains, func(of string) bool {
		return domain == of || strings.HasSuffix(domain, "."+of)
	})
}
