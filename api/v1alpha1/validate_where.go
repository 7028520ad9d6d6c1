package v1alpha1

import (
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// MaxInlineCode is the longest inline code in a cluster, in bytes. It travels in
// an annotation of each pod, of which Kubernetes takes 256 KiB in all.
const MaxInlineCode = 200_000

// MaxWarmPool is the largest size of a warm pool, and MaxWarmPools how many a ClusterRuntime
// may have.
const (
	MaxWarmPool  = 100
	MaxWarmPools = 8
)

// SimilarRuntime is the first of some runtimes that is of the language that a name which is
// none of them seems to mean, such as python3.13 for python3; empty if there is none.
func SimilarRuntime(name RuntimeName, among []RuntimeName) RuntimeName {
	language := func(name RuntimeName) string {
		return strings.ToLower(strings.TrimRight(strings.TrimSuffix(string(name), ".x"), "0123456789.-"))
	}
	meant := language(name)
	for _, known := range among {
		if len(meant) >= 4 && strings.HasPrefix(language(known), meant) {
			return known
		}
	}
	return ""
}

// ValidateLocal says what of a valid Function local mode cannot run.
func ValidateLocal(f *Function) field.ErrorList {
	var errs field.ErrorList
	spec := field.NewPath("spec", "template")
	if f.Spec.Template.RuntimeRef.Name != "" && !slices.Contains(runtimes, f.Spec.Template.RuntimeRef.Name) {
		unknown := field.NotSupported(spec.Child("runtimeRef", "name"), f.Spec.Template.RuntimeRef.Name, runtimes)
		if similar := SimilarRuntime(f.Spec.Template.RuntimeRef.Name, runtimes); similar != "" {
			unknown.Detail += "; did you mean " + string(similar) + "?"
		}
		errs = append(errs, unknown)
	}
	if f.Spec.Template.Image != "" && f.Spec.Template.RuntimeRef.Name == "" && len(f.Spec.Template.Command) == 0 {
		errs = append(errs, field.Invalid(spec.Child("image"), f.Spec.Template.Image,
			"needs a cluster; give command: or runtimeRef: to run it in local mode"))
	}
	code := f.Spec.Template.Code
	if code != nil && code.ConfigMapRef.Name != "" {
		errs = append(errs, field.Invalid(spec.Child("code", "configMapRef"), code.ConfigMapRef.Name,
			"needs a cluster; give code.inline or code.path to run it in local mode"))
	}
	if code != nil && code.Path != "" && !filepath.IsAbs(code.Path) {
		errs = append(errs, field.Invalid(spec.Child("code", "path"), code.Path,
			"is relative, which has a meaning only in a manifest file; give the absolute path"))
	}
	errs = append(errs, validateLocalEnv(spec.Child("env"), f.Spec.Template.Env)...)
	return append(errs, validateLocalMounts(spec.Child("mounts"), f.Spec.Template.Mounts)...)
}

// ValidateCluster says what of a valid Function a cluster cannot run.
func ValidateCluster(f *Function) field.ErrorList {
	var errs field.ErrorList
	spec := field.NewPath("spec", "template")
	if f.Spec.Template.Image == "" && f.Spec.Template.RuntimeRef.Name == "" && len(f.Spec.Template.Command) > 0 {
		errs = append(errs, field.Invalid(spec.Child("command"), f.Spec.Template.Command,
			"a command without an image runs in local mode only; add image:, which holds the program"))
	}
	code := f.Spec.Template.Code
	if code != nil && code.Path != "" {
		errs = append(errs, field.Forbidden(spec.Child("code", "path"),
			"needs local mode; put the code into an image, a ConfigMap or code.inline"))
	}
	if code != nil && len(code.Inline) > MaxInlineCode {
		errs = append(errs, field.Invalid(spec.Child("code", "inline"), fmt.Sprintf("%d bytes", len(code.Inline)),
			fmt.Sprintf("is longer than %d bytes; use a ConfigMap or an image", MaxInlineCode)))
	}
	return errs
}

// DefaultClusterRuntime fills every field of a ClusterRuntime that was left out.
func DefaultClusterRuntime(r *ClusterRuntime) {
	orElse(&r.APIVersion, APIVersion)
	orElse(&r.Kind, KindClusterRuntime)
	orElse(&r.Spec.Protocol, ProtocolLambdaRuntime)
	orElse(&r.Spec.Contract, ContractV1)
	for i := range r.Spec.WarmPools {
		DefaultResources(&r.Spec.WarmPools[i].Resources)
	}
}

// ValidateClusterRuntime says everything that is wrong with a ClusterRuntime that has its
// defaults.
func ValidateClusterRuntime(r *ClusterRuntime) field.ErrorList {
	var errs field.ErrorList
	spec := field.NewPath("spec")
	errs = append(errs, validateRuntimeName(field.NewPath("metadata", "name"), r.Name)...)
	if r.Spec.Contract != ContractV1 {
		errs = append(errs, field.NotSupported(spec.Child("contract"), r.Spec.Contract, []string{ContractV1}))
	}
	if r.Spec.Image == "" {
		errs = append(errs, field.Required(spec.Child("image"), "write for example image: example.com/team/runtime:1.0"))
	}
	errs = append(errs, validateImage(spec.Child("image"), r.Spec.Image)...)
	errs = append(errs, validateCommand(spec.Child("command"), r.Spec.Command)...)
	if !slices.Contains(protocols, r.Spec.Protocol) {
		errs = append(errs, field.NotSupported(spec.Child("protocol"), r.Spec.Protocol, protocols))
	}
	if !extensionPattern.MatchString(r.Spec.FileExtension) {
		errs = append(errs, field.Invalid(spec.Child("fileExtension"), r.Spec.FileExtension,
			"must be letters and digits without a dot, at most 16; write for example py"))
	}
	errs = append(errs, validateRuntimeEnv(spec.Child("env"), r.Spec.Env)...)
	errs = append(errs, validateRuntimeBounds(spec, &r.Spec)...)
	return append(errs, validateWarmPools(spec.Child("warmPools"), &r.Spec)...)
}

func validateWarmPools(at *field.Path, r *ClusterRuntimeSpec) field.ErrorList {
	if len(r.WarmPools) == 0 {
		return nil
	}
	var errs field.ErrorList
	if r.Protocol != ProtocolLambdaRuntime {
		errs = append(errs, field.Invalid(at, r.Protocol,
			"need the protocol LambdaRuntime, the only one that can hand code to a running runtime; remove warmPools"))
	}
	if r.FileExtension == "" {
		errs = append(errs, field.Invalid(at, r.FileExtension,
			"need fileExtension, because a spare instance gets only inline code; write for example fileExtension: py"))
	}
	if n := len(r.WarmPools); n > MaxWarmPools {
		errs = append(errs, field.TooMany(at, n, MaxWarmPools))
	}
	for i := range r.WarmPools {
		pool, at := &r.WarmPools[i], at.Index(i)
		errs = append(errs, validateLabel(at.Child("name"), pool.Name, "small")...)
		if pool.Size < 1 || pool.Size > MaxWarmPool {
			errs = append(errs, field.Invalid(at.Child("size"), pool.Size,
				fmt.Sprintf("must be 1 to %d; write for example 3, or remove warmPools for none", MaxWarmPool)))
		}
		errs = append(errs, validateResources(at.Child("resources"), &pool.Resources)...)
		errs = append(errs, validatePlain(at.Child("resources", "requests"), pool.Resources.Requests)...)
		errs = append(errs, validatePlain(at.Child("resources", "limits"), pool.Resources.Limits)...)
		if pool.NamespaceSelector != nil {
			errs = append(errs, validateSelector(at.Child("namespaceSelector"), pool.NamespaceSelector)...)
		}
		for _, before := range r.WarmPools[:i] {
			switch {
			case before.Name == pool.Name:
				errs = append(errs, field.Duplicate(at.Child("name"), pool.Name))
			case contend(&before, pool):
				errs = append(errs, field.Invalid(at, pool.Name, fmt.Sprintf("has the resources of %s and admits the same namespaces, so functions would use only the first; "+
					"give each a namespaceSelector of its own, or make them one with a larger size", before.Name)))
			}
		}
	}
	return errs
}

// validatePlain refuses extended resources, which a spare instance would keep from functions
// that use them.
func validatePlain(at *field.Path, list corev1.ResourceList) field.ErrorList {
	var errs field.ErrorList
	for _, name := range slices.Sorted(maps.Keys(list)) {
		if strings.Contains(string(name), "/") {
			errs = append(errs, field.Forbidden(at.Key(string(name)),
				"a spare instance holds no extended resources; write cpu, memory or ephemeral-storage, and functions with others start pods of their own"))
		}
	}
	return errs
}

// MaxRequirements bounds matchLabels and matchExpressions of a NamespaceSelector, and
// MaxSelectorValues the values of one requirement.
const (
	MaxRequirements   = 8
	MaxSelectorValues = 64
)

var selectorOperators = []metav1.LabelSelectorOperator{
	metav1.LabelSelectorOpIn, metav1.LabelSelectorOpNotIn, metav1.LabelSelectorOpExists, metav1.LabelSelectorOpDoesNotExist,
}

// validateSelector refuses what could pick no namespace, because no label is like that.
func validateSelector(at *field.Path, s *NamespaceSelector) field.ErrorList {
	var errs field.ErrorList
	labels, expressions := at.Child("matchLabels"), at.Child("matchExpressions")
	if n := len(s.MatchLabels); n > MaxRequirements {
		errs = append(errs, field.TooMany(labels, n, MaxRequirements))
	}
	for _, key := range slices.Sorted(maps.Keys(s.MatchLabels)) {
		if len(validation.IsQualifiedName(key)) > 0 || len(validation.IsValidLabelValue(s.MatchLabels[key])) > 0 {
			errs = append(errs, field.Invalid(labels.Key(key), s.MatchLabels[key],
				"a key or a value is not valid for a label, so it selects no namespace; write for example team: payments"))
		}
	}
	if n := len(s.MatchExpressions); n > MaxRequirements {
		errs = append(errs, field.TooMany(expressions, n, MaxRequirements))
	}
	for i := range s.MatchExpressions {
		errs = append(errs, validateRequirement(expressions.Index(i), &s.MatchExpressions[i])...)
	}
	return errs
}

func validateRequirement(at *field.Path, r *NamespaceRequirement) field.ErrorList {
	var errs field.ErrorList
	if len(validation.IsQualifiedName(r.Key)) > 0 {
		errs = append(errs, field.Invalid(at.Child("key"), r.Key,
			"must be the key of a label: a name, or a domain, / and a name; write for example team, or example.com/team"))
	}
	if !slices.Contains(selectorOperators, r.Operator) {
		return append(errs, field.NotSupported(at.Child("operator"), r.Operator, selectorOperators))
	}
	compares := r.Operator == metav1.LabelSelectorOpIn || r.Operator == metav1.LabelSelectorOpNotIn
	if compares != (len(r.Values) > 0) {
		errs = append(errs, field.Invalid(at.Child("values"), r.Values,
			"In and NotIn need values, and Exists and DoesNotExist have none; write for example {key: team, operator: In, values: [payments]}"))
	}
	if n := len(r.Values); n > MaxSelectorValues {
		errs = append(errs, field.TooMany(at.Child("values"), n, MaxSelectorValues))
	}
	return errs
}

// contend tells whether two pools are for the same functions, as far as it can be seen
// without knowing the namespaces.
func contend(a, b *WarmPool) bool {
	if !a.Resources.Equal(&b.Resources) {
		return false
	}
	return a.NamespaceSelector == nil || b.NamespaceSelector == nil || equality.Semantic.DeepEqual(a.NamespaceSelector, b.NamespaceSelector)
}

const runtimeNameRule = "must be 1 to 63 lower-case letters, digits, hyphens and dots, with a letter or digit at both ends"

// validateRuntimeName checks a name that may have dots, such as a version's, and that is
// a label of pods.
func validateRuntimeName(at *field.Path, name string) field.ErrorList {
	switch {
	case name == "":
		return field.ErrorList{field.Required(at, runtimeNameRule+"; write for example "+lastName(at)+": "+string(RuntimePython313))}
	case len(name) <= validation.DNS1123LabelMaxLength && len(validation.IsDNS1123Subdomain(name)) == 0:
		return nil
	}
	example := string(RuntimePython313)
	if corrected := toLabel(name); corrected != "" {
		example = corrected
	}
	return field.ErrorList{field.Invalid(at, name, runtimeNameRule+"; write for example "+example)}
}
