package v1alpha1

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/windlass-dev/windlass/api/wellknown"
)

var (
	protocols         = []Protocol{ProtocolHTTP, ProtocolLambdaRuntime}
	deliveries        = []Delivery{DeliveryAtMostOnce, DeliveryAtLeastOnce}
	disconnects       = []OnClientDisconnect{OnClientDisconnectContinue, OnClientDisconnectCancel}
	schedulingClasses = []SchedulingClass{ClassLatencyCritical, ClassStandard, ClassBatch}
	scaleDownPolicies = []ScaleDownPolicy{ScaleDownFixed, ScaleDownLearned}
)

// A handler is a module, perhaps below folders or packages, and the name of a
// function in it.
var handlerPattern = regexp.MustCompile(`^\w[\w-]*([./]\w[\w-]*)*\.[A-Za-z_$][\w$]*$`)

// An image is checked for what cannot be one: its registry knows the rest.
var imagePattern = regexp.MustCompile(`^[0-9A-Za-z][0-9A-Za-z._:/@-]*$`)

// Validate says everything that is wrong with a Function that has its defaults,
// wherever it is to run. Each error names the field and what to do about it.
func Validate(f *Function) field.ErrorList {
	var errs field.ErrorList
	if f.APIVersion != APIVersion {
		errs = append(errs, field.NotSupported(field.NewPath("apiVersion"), f.APIVersion, []string{APIVersion}))
	}
	if f.Kind != KindFunction {
		errs = append(errs, field.NotSupported(field.NewPath("kind"), f.Kind, []string{KindFunction}))
	}
	meta := field.NewPath("metadata")
	errs = append(errs, validateLabel(meta.Child("name"), f.Name, "my-function")...)
	errs = append(errs, validateLabel(meta.Child("namespace"), f.Namespace, DefaultNamespace)...)
	if name := f.Algorithm(); name != "" && !slices.Contains(algorithms, name) {
		errs = append(errs, field.NotSupported(meta.Child("annotations").Key(wellknown.AnnotationAlgorithm), name, algorithms))
	}

	spec := field.NewPath("spec")
	errs = append(errs, validateTemplate(spec.Child("template"), &f.Spec.Template)...)
	errs = append(errs, validateCalls(spec.Child("calls"), &f.Spec.Calls)...)
	errs = append(errs, validateScaling(spec.Child("scaling"), &f.Spec.Scaling)...)
	errs = append(errs, validateExpose(spec.Child("expose"), &f.Spec.Expose)...)
	errs = append(errs, validateUse(spec, f)...)
	return append(errs, validateBounds(spec, &f.Spec)...)
}

func validateTemplate(at *field.Path, t *FunctionTemplate) field.ErrorList {
	errs := validateMetadata(at.Child("metadata"), &t.Metadata)
	errs = append(errs, validateWhatRuns(at, t)...)
	errs = append(errs, validateNames(at, t)...)
	errs = append(errs, validateReferences(at, t)...)
	errs = append(errs, validateRanges(at, t)...)
	errs = append(errs, validateResources(at.Child("resources"), &t.Resources)...)
	errs = append(errs, validateScheduling(at.Child("scheduling"), &t.Scheduling)...)
	errs = append(errs, validateEnv(at.Child("env"), t.Env)...)
	errs = append(errs, validateEnvFrom(at.Child("envFrom"), t.EnvFrom)...)
	return append(errs, validateMounts(at.Child("mounts"), t.Mounts)...)
}

const labelRule = "must be 1 to 63 lower-case letters, digits and hyphens, with a letter or digit at both ends"

func validateLabel(at *field.Path, value, example string) field.ErrorList {
	if value == "" {
		return field.ErrorList{field.Required(at, fmt.Sprintf("%s; write for example %s: %s",
			labelRule, lastName(at), example))}
	}
	if len(validation.IsDNS1123Label(value)) == 0 {
		return nil
	}
	if corrected := toLabel(value); corrected != "" {
		example = corrected
	}
	return field.ErrorList{field.Invalid(at, value, labelRule+"; write for example "+example)}
}

// toLabel is the label that someone who wrote s may have meant, or nothing.
func toLabel(s string) string {
	s = strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= '0' && r <= '9' {
			return r
		}
		return '-'
	}, strings.ToLower(s))
	if len(s) > validation.DNS1123LabelMaxLength {
		s = s[:validation.DNS1123LabelMaxLength]
	}
	return strings.Trim(s, "-")
}

func lastName(at *field.Path) string {
	s := at.String()
	return s[strings.LastIndexByte(s, '.')+1:]
}

// validateWhatRuns checks that exactly one of image, command and runtimeRef says
// what to run, and that what goes with it is there.
func validateWhatRuns(at *field.Path, t *FunctionTemplate) field.ErrorList {
	switch {
	case t.RuntimeRef.Name != "":
		return validateHandler(at, t)
	case t.Image == "" && len(t.Command) == 0:
		return field.ErrorList{field.Required(at, `command: or runtimeRef: missing; add for example `+
			`command: ["./server"] for a program that serves HTTP on $PORT, or `+
			`runtimeRef: {name: python3.13} with handler: main.handle and code: {path: .}; in a cluster, image: works too`)}
	}
	errs := validateImage(at.Child("image"), t.Image)
	errs = append(errs, validateCommand(at.Child("command"), t.Command)...)
	errs = append(errs, validateArgs(at.Child("args"), t.Args)...)
	if t.Handler != "" && t.Protocol != ProtocolLambdaRuntime {
		errs = append(errs, field.Forbidden(at.Child("handler"),
			"only a runtime has a handler; add "+anyRuntime+", or protocol: LambdaRuntime for a runtime client of your own, or remove handler"))
	}
	return append(errs, validateProgramCode(at.Child("code"), t)...)
}

// validateHandler checks a function that a runtime runs.
func validateHandler(at *field.Path, t *FunctionTemplate) field.ErrorList {
	var errs field.ErrorList
	if t.Image != "" {
		errs = append(errs, field.Forbidden(at.Child("image"),
			"a runtime brings its own image; remove image or runtimeRef"))
	}
	if len(t.Command) > 0 {
		errs = append(errs, field.Forbidden(at.Child("command"),
			"a runtime brings its own program; remove command or runtimeRef"))
	}
	if len(t.Args) > 0 {
		errs = append(errs, field.Forbidden(at.Child("args"),
			"a runtime brings its own program; remove args or runtimeRef"))
	}
	handler := at.Child("handler")
	switch {
	case t.Handler == "":
		errs = append(errs, field.Required(handler, "a runtime needs module.function; write for example handler: main.handle"))
	case slices.Contains(runtimes, t.RuntimeRef.Name) && !handlerPattern.MatchString(t.Handler):
		errs = append(errs, field.Invalid(handler, t.Handler, "must be module.function; write for example main.handle"))
	}
	return append(errs, validateRuntimeCode(at.Child("code"), t.Code)...)
}

func validateRuntimeCode(at *field.Path, code *Code) field.ErrorList {
	switch {
	case code == nil || *code == Code{}:
		return field.ErrorList{field.Required(at,
			"a runtime needs source code; write for example code: {path: .}, or put the source into code.inline")}
	case code.Inline != "" && code.Path != "":
		return field.ErrorList{field.Forbidden(at,
			"inline and path exclude each other; remove code.inline or code.path")}
	case code.ConfigMapRef.Name != "" && code.Inline != "":
		return field.ErrorList{field.Forbidden(at,
			"inline and configMapRef exclude each other; remove code.inline or code.configMapRef")}
	case code.ConfigMapRef.Name != "" && code.Path != "":
		return field.ErrorList{field.Forbidden(at,
			"configMapRef and path exclude each other; remove code.configMapRef or code.path")}
	}
	errs := validateReference(at.Child("configMapRef", "name"), code.ConfigMapRef.Name, "a ConfigMap", "my-function-code")
	return append(errs, validateNoNUL(at.Child("path"), code.Path)...)
}

// validateProgramCode checks the code of a command or an image.
func validateProgramCode(at *field.Path, t *FunctionTemplate) field.ErrorList {
	switch {
	case t.Code == nil:
		return nil
	case len(t.Command) == 0:
		return field.ErrorList{field.Forbidden(at, "an image holds its own code; remove code")}
	case t.Code.Inline != "":
		return field.ErrorList{field.Forbidden(at.Child("inline"),
			"only a runtime loads inline code; add runtimeRef: and handler:, or give code.path, the folder that the command starts in")}
	case t.Code.ConfigMapRef.Name != "":
		return field.ErrorList{field.Forbidden(at.Child("configMapRef"),
			"only a runtime loads code from a ConfigMap; add runtimeRef: and handler:, or put the code into the image and remove code")}
	case t.Code.Path == "":
		return field.ErrorList{field.Required(at.Child("path"),
			"code of a command is the folder that it starts in; write for example path: . or remove code")}
	}
	return validateNoNUL(at.Child("path"), t.Code.Path)
}

func validateCommand(at *field.Path, command []string) field.ErrorList {
	var errs field.ErrorList
	for i, arg := range command {
		if i == 0 && arg == "" {
			errs = append(errs, field.Required(at.Index(i), `the program is missing; write for example command: ["./server"]`))
		}
		errs = append(errs, validateNoNUL(at.Index(i), arg)...)
	}
	return errs
}

func validateArgs(at *field.Path, args []string) field.ErrorList {
	var errs field.ErrorList
	for i, arg := range args {
		errs = append(errs, validateNoNUL(at.Index(i), arg)...)
	}
	return errs
}

func validateImage(at *field.Path, image string) field.ErrorList {
	if image == "" || imagePattern.MatchString(image) && !strings.Contains(image, "://") {
		return nil
	}
	return field.ErrorList{field.Invalid(at, image,
		"must be the reference of an image; write for example example.com/team/function:1.0")}
}

// validateNoNUL refuses what no operating system can hand to a program.
func validateNoNUL(at *field.Path, value string) field.ErrorList {
	if strings.IndexByte(value, 0) < 0 {
		return nil
	}
	return field.ErrorList{field.Invalid(at, value, "must not contain a NUL byte; remove it")}
}

func validateNames(at *field.Path, t *FunctionTemplate) field.ErrorList {
	var errs field.ErrorList
	if t.RuntimeRef.Name != "" {
		errs = append(errs, validateRuntimeName(at.Child("runtimeRef", "name"), string(t.RuntimeRef.Name))...)
	}
	if !slices.Contains(protocols, t.Protocol) {
		errs = append(errs, field.NotSupported(at.Child("protocol"), t.Protocol, protocols))
	}
	return errs
}
