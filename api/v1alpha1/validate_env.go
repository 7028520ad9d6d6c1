package v1alpha1

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// Fields of a pod that local mode knows too.
const (
	FieldPathName      = "metadata.name"
	FieldPathNamespace = "metadata.namespace"
)

// reservedEnvPrefix begins the names of variables that an agent reads.
const reservedEnvPrefix = "WINDLASS_"

// reservedEnv are the variables that Windlass sets for the function.
var reservedEnv = sets.New("PORT", "AWS_LAMBDA_RUNTIME_API", "_HANDLER", "LAMBDA_TASK_ROOT")

// fieldPaths are those that the API server takes in a pod, but for the ones with a key.
var fieldPaths = sets.New(FieldPathName, FieldPathNamespace, "metadata.uid", "spec.nodeName", "spec.serviceAccountName",
	"status.hostIP", "status.hostIPs", "status.podIP", "status.podIPs")

var (
	prefixPattern = regexp.MustCompile(`^([A-Za-z_.-][0-9A-Za-z_.-]*)?$`)
	// keyedPath is a path with the key of a label or an annotation.
	keyedPath = regexp.MustCompile(`^metadata[.](?:labels|annotations)\['([^']+)'\]$`)
)

func validateEnv(at *field.Path, env []EnvVar) field.ErrorList {
	var errs field.ErrorList
	seen := sets.New[string]()
	for i, v := range env {
		name := at.Index(i).Child("name")
		switch {
		case v.Name == "":
			errs = append(errs, field.Required(name, "write for example name: APP_MODE"))
		case len(validation.IsEnvVarName(v.Name)) > 0:
			errs = append(errs, field.Invalid(name, v.Name,
				"must be letters, digits, '_', '-' and '.', and not begin with a digit or '..'; write for example APP_MODE"))
		case reservedEnv.Has(v.Name) || strings.HasPrefix(v.Name, reservedEnvPrefix):
			errs = append(errs, field.Forbidden(name, fmt.Sprintf(
				"Windlass sets %s itself; take another name, for example APP_%s", v.Name,
				cmp.Or(strings.Trim(strings.TrimPrefix(v.Name, reservedEnvPrefix), "_"), "MODE"))))
		case seen.Has(v.Name):
			errs = append(errs, field.Invalid(name, v.Name, "occurs twice; remove one of the two or rename it"))
		}
		seen.Insert(v.Name)
		errs = append(errs, validateNoNUL(at.Index(i).Child("value"), v.Value)...)
		errs = append(errs, validateValueFrom(at.Index(i).Child("valueFrom"), v)...)
	}
	return errs
}

// validateRuntimeEnv checks the variables of a runtime.
func validateRuntimeEnv(at *field.Path, env []EnvVar) field.ErrorList {
	errs := validateEnv(at, env)
	if slices.ContainsFunc(env, func(v EnvVar) bool { return v.ValueFrom != nil }) {
		errs = append(errs, field.Forbidden(at, "a ClusterRuntime serves all namespaces, but a Secret or ConfigMap is in one; "+
			"write a value here, or valueFrom in the functions"))
	}
	return errs
}

func validateValueFrom(at *field.Path, v EnvVar) field.ErrorList {
	from := v.ValueFrom
	if from == nil {
		return nil
	}
	var errs field.ErrorList
	if v.Value != "" {
		errs = append(errs, field.Forbidden(at, "value and valueFrom exclude each other; remove one of the two"))
	}
	given := 0
	for _, is := range []bool{from.SecretKeyRef != nil, from.ConfigMapKeyRef != nil, from.FieldRef != nil} {
		if is {
			given++
		}
	}
	if given != 1 {
		errs = append(errs, field.Forbidden(at, "needs exactly one of secretKeyRef, configMapKeyRef and fieldRef; "+
			"write for example secretKeyRef: {name: my-secret, key: password}"))
	}
	errs = append(errs, validateKeyReference(at.Child("secretKeyRef"), from.SecretKeyRef, "a Secret", "my-secret")...)
	errs = append(errs, validateKeyReference(at.Child("configMapKeyRef"), from.ConfigMapKeyRef, "a ConfigMap", "my-settings")...)
	if from.FieldRef != nil && !knownFieldPath(from.FieldRef.FieldPath) {
		errs = append(errs, field.Invalid(at.Child("fieldRef", "fieldPath"), from.FieldRef.FieldPath,
			"must be a field of the pod: metadata.name, .namespace, .uid, .labels['KEY'] or .annotations['KEY'], "+
				"spec.nodeName or .serviceAccountName, status.hostIP, .hostIPs, .podIP or .podIPs; write for example metadata.name"))
	}
	return errs
}

func validateKeyReference(at *field.Path, ref *KeyReference, what, example string) field.ErrorList {
	if ref == nil {
		return nil
	}
	errs := validateName(at.Child("name"), ref.Name, what, example)
	switch {
	case ref.Key == "":
		errs = append(errs, field.Required(at.Child("key"), "write for example key: password"))
	case len(validation.IsConfigMapKey(ref.Key)) > 0:
		errs = append(errs, field.Invalid(at.Child("key"), ref.Key, "must be the key of a Secret or a ConfigMap, "+
			"in letters, digits, '-', '_' and '.'; write for example password"))
	}
	return errs
}

func knownFieldPath(path string) bool {
	key := keyedPath.FindStringSubmatch(path)
	return fieldPaths.Has(path) || key != nil && len(validation.IsQualifiedName(key[1])) == 0
}

func validateEnvFrom(at *field.Path, sources []EnvFromSource) field.ErrorList {
	var errs field.ErrorList
	for i, source := range sources {
		at := at.Index(i)
		if !prefixPattern.MatchString(source.Prefix) {
			errs = append(errs, field.Invalid(at.Child("prefix"), source.Prefix,
				"must be letters, digits, '_', '-' and '.', and not begin with a digit; write for example DB_"))
		}
		if (source.SecretRef == nil) == (source.ConfigMapRef == nil) {
			errs = append(errs, field.Forbidden(at,
				"needs exactly one of secretRef and configMapRef; write for example secretRef: {name: my-secret}"))
		}
		if source.SecretRef != nil {
			errs = append(errs, validateName(at.Child("secretRef", "name"), source.SecretRef.Name, "a Secret", "my-secret")...)
		}
		if source.ConfigMapRef != nil {
			errs = append(errs, validateName(at.Child("configMapRef", "name"), source.ConfigMapRef.Name, "a ConfigMap", "my-settings")...)
		}
	}
	return errs
}

// validateLocalEnv says what variables of a valid Function local mode cannot have.
func validateLocalEnv(at *field.Path, env []EnvVar) field.ErrorList {
	var errs field.ErrorList
	for i, v := range env {
		if v.ValueFrom == nil || v.ValueFrom.FieldRef == nil {
			continue
		}
		if path := v.ValueFrom.FieldRef.FieldPath; path != FieldPathName && path != FieldPathNamespace {
			errs = append(errs, field.Invalid(at.Index(i).Child("valueFrom", "fieldRef", "fieldPath"), path,
				"needs a cluster: local mode has no pods, and knows metadata.name and metadata.namespace; write one of them, or a value"))
		}
	}
	return errs
}
