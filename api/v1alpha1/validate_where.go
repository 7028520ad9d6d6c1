package v1alpha1

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// MaxInlineCode is the longest inline code in a cluster, in bytes. It travels in
// an annotation of each pod, of which Kubernetes takes 256 KiB in all.
const MaxInlineCode = 200_000

// MaxWarmPool is the largest size of a warm pool.
const MaxWarmPool = 100

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
	return append(errs, validateWarmPools(spec.Child("warmPools"), &r.Spec)...)
}

func validateWarmPools(at *field.Path, r *ClusterRuntimeSpec) field.ErrorList {
	if len(r.WarmPools) == 0 {
		return nil
	}
	var errs field.ErrorList
	if r.Protocol != ProtocolLambdaRuntime {
		errs = append(errs, field.Invalid(at, r.Protocol,
			"need the protocol LambdaRuntime, by which alone code is handed to a runtime that has started; remove warmPools"))
	}
	if r.FileExtension == "" {
		errs = append(errs, field.Invalid(at, r.FileExtension,
			"need fileExtension, since only inline code is handed to a spare instance; write for example fileExtension: py"))
	}
	if n := len(r.WarmPools); n > 1 {
		errs = append(errs, field.TooMany(at, n, 1))
	}
	for i := range r.WarmPools {
		pool, at := &r.WarmPools[i], at.Index(i)
		errs = append(errs, validateLabel(at.Child("name"), pool.Name, "small")...)
		if pool.Size < 1 || pool.Size > MaxWarmPool {
			errs = append(errs, field.Invalid(at.Child("size"), pool.Size,
				fmt.Sprintf("must be 1 to %d; write for example 3, or remove warmPools for none", MaxWarmPool)))
		}
		errs = append(errs, validateResources(at.Child("resources"), &pool.Resources)...)
	}
	return errs
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
