package v1alpha1

import (
	"fmt"
	"regexp"

	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

var extensionPattern = regexp.MustCompile(`^[0-9A-Za-z]{0,16}$`)

// validateReferences checks the names of objects that the pods refer to.
func validateReferences(at *field.Path, t *FunctionTemplate) field.ErrorList {
	errs := validatePlacement(at.Child("placement"), &t.Placement)
	errs = append(errs, validateReference(at.Child("serviceAccountName"), t.ServiceAccountName, "a ServiceAccount", "my-function")...)
	seen := sets.New[string]()
	for i, secret := range t.ImagePullSecrets {
		at := at.Child("imagePullSecrets").Index(i).Child("name")
		errs = append(errs, validateName(at, secret.Name, "a Secret", "my-registry")...)
		if seen.Has(secret.Name) {
			errs = append(errs, field.Invalid(at, secret.Name, "occurs twice; remove one of the two"))
		}
		seen.Insert(secret.Name)
	}
	return errs
}

// validateReference checks a name that may be left out.
func validateReference(at *field.Path, name, what, example string) field.ErrorList {
	if name == "" {
		return nil
	}
	return validateName(at, name, what, example)
}

func validateName(at *field.Path, name, what, example string) field.ErrorList {
	if name == "" {
		return field.ErrorList{field.Required(at, "write for example name: "+example)}
	}
	if len(validation.IsDNS1123Subdomain(name)) == 0 {
		return nil
	}
	return field.ErrorList{field.Invalid(at, name, fmt.Sprintf(
		"must be the name of %s, in lower-case letters, digits, hyphens and dots; write for example %s", what, example))}
}
