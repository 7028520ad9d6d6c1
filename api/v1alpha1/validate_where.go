package v1alpha1

import (
	"fmt"
	"path/filepath"
	"slices"

	"k8s.io/apimachinery/pkg/util/validation/field"
)

// MaxInlineCode is the longest inline code in a cluster, in bytes. It travels in
// an annotation of each pod, of which Kubernetes takes 256 KiB in all.
const MaxInlineCode = 200_000

// MaxWarmPool is the largest size of a warm pool.
const MaxWarmPool = 100

// ValidateLocal says what of a valid Function local mode cannot run.
func ValidateLocal(f *Function) field.ErrorList {
	var errs field.ErrorList
	spec := field.NewPath("spec", "template")
	if f.Spec.Template.RuntimeRef.Name != "" && !slices.Contains(runtimes, f.Spec.Template.RuntimeRef.Name) {
		errs = append(errs, field.NotSupported(spec.Child("runtimeRef", "name"), f.Spec.Template.RuntimeRef.Name, runtimes))
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
	return errs
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

// DefaultRuntime fills every field of a Runtime that was left out.
func DefaultRuntime(r *Runtime) {
	orElse(&r.APIVersion, APIVersion)
	orElse(&r.Kind, KindRuntime)
	orElse(&r.Spec.Protocol, ProtocolLambdaRuntime)
	if r.Spec.WarmPool != nil {
		DefaultResources(&r.Spec.WarmPool.Resources)
	}
}

// ValidateRuntime says everything that is wrong with a Runtime that has its
// defaults.
func ValidateRuntime(r *Runtime) field.ErrorList {
	var errs field.ErrorList
	spec := field.NewPath("spec")
	errs = append(errs, validateLabel(field.NewPath("metadata", "name"), r.Name, string(RuntimePython3))...)
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
	errs = append(errs, validateEnv(spec.Child("env"), r.Spec.Env)...)
	return append(errs, validateWarmPool(spec.Child("warmPool"), &r.Spec)...)
}

func validateWarmPool(at *field.Path, r *RuntimeSpec) field.ErrorList {
	if r.WarmPool == nil {
		return nil
	}
	var errs field.ErrorList
	if r.Protocol != ProtocolLambdaRuntime {
		errs = append(errs, field.Invalid(at, r.Protocol,
			"needs the protocol LambdaRuntime, by which alone code is handed to a runtime that has started; remove warmPool"))
	}
	if r.FileExtension == "" {
		errs = append(errs, field.Invalid(at, r.FileExtension,
			"needs fileExtension, since only inline code is handed to a spare instance; write for example fileExtension: py"))
	}
	if r.WarmPool.Size < 1 || r.WarmPool.Size > MaxWarmPool {
		errs = append(errs, field.Invalid(at.Child("size"), r.WarmPool.Size,
			fmt.Sprintf("must be 1 to %d; write for example 3, or remove warmPool for none", MaxWarmPool)))
	}
	return append(errs, validateResources(at.Child("resources"), &r.WarmPool.Resources)...)
}
