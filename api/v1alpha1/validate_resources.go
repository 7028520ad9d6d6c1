package v1alpha1

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// Bounds of Resources, inclusive.
const (
	// MaxResources is how many resources a list may name.
	MaxResources = 8
	// MaxExtended is the most of an extended resource.
	MaxExtended = 999_999_999
	// maxResourceName is the longest name of one, in bytes.
	maxResourceName = 128
)

var (
	minCPU    = *resource.NewMilliQuantity(1, resource.DecimalSI)
	minMemory = *resource.NewQuantity(1<<20, resource.BinarySI)
)

// amountOf is a resource that every node has.
type amountOf struct {
	name    corev1.ResourceName
	least   resource.Quantity
	example string
}

// amounts are the resources that every node has, with how little of each is refused:
// what is so little that its suffix must be wrong, like the thousandths of a byte of
// "64m".
var amounts = []amountOf{
	{corev1.ResourceCPU, minCPU, "250m, a quarter of a core"},
	{corev1.ResourceMemory, minMemory, "128Mi, which are 128 times 2^20 bytes"},
	{corev1.ResourceEphemeralStorage, minMemory, "2Gi, which are 2 times 2^30 bytes"},
}

// extended says whether a name claims to be that of a resource which somebody has added
// to nodes.
func extended(name corev1.ResourceName) bool { return strings.Contains(string(name), "/") }

// IsExtended says whether a name is that of a resource which somebody has added to nodes,
// such as nvidia.com/gpu. A pod has whole ones, and shares none.
func IsExtended(name corev1.ResourceName) bool {
	return extended(name) && !strings.Contains(string(name), "kubernetes.io/")
}

func validateResources(at *field.Path, r *Resources) field.ErrorList {
	requests, limits := at.Child("requests"), at.Child("limits")
	// The API server counts the requests that somebody wrote.
	errs := tooManyResources(requests, bareResources(r).Requests)
	errs = append(errs, validateResourceNames(requests, r.Requests)...)
	errs = append(errs, tooManyResources(limits, r.Limits)...)
	errs = append(errs, validateResourceNames(limits, r.Limits)...)
	for _, kind := range amounts {
		request, requested := r.Requests[kind.name]
		limit, limited := r.Limits[kind.name]
		requestAt, limitAt := requests.Key(string(kind.name)), limits.Key(string(kind.name))
		if !requested && kind.name != corev1.ResourceEphemeralStorage {
			errs = append(errs, field.Required(requestAt, "write for example "+kind.example))
		}
		if requested && request.Cmp(kind.least) < 0 {
			errs = append(errs, tooLittle(requestAt, request, kind.least, kind.example))
		}
		if limited && limit.Cmp(kind.least) < 0 {
			errs = append(errs, tooLittle(limitAt, limit, kind.least, kind.example))
		} else if requested && limited && limit.Cmp(request) < 0 {
			errs = append(errs, field.Invalid(limitAt, limit.String(), fmt.Sprintf(
				"must be at least the request; raise it to %s, or lower %s", &request, requestAt)))
		}
	}
	return append(errs, validateExtended(at, r)...)
}

func tooLittle(at *field.Path, q, least resource.Quantity, example string) *field.Error {
	return field.Invalid(at, q.String(), fmt.Sprintf("must be at least %s; write for example %s", &least, example))
}

func tooManyResources(at *field.Path, list corev1.ResourceList) field.ErrorList {
	if len(list) <= MaxResources {
		return nil
	}
	return field.ErrorList{field.TooMany(at, len(list), MaxResources)}
}

func validateResourceNames(at *field.Path, list corev1.ResourceList) field.ErrorList {
	var errs field.ErrorList
	for _, name := range slices.Sorted(maps.Keys(list)) {
		if !knownResource(name) {
			errs = append(errs, field.Invalid(at, string(name), "is no resource that a function can have: only cpu, memory, "+
				"ephemeral-storage, and extended resources of a domain, such as nvidia.com/gpu; correct the name"))
		}
	}
	return errs
}

// knownResource says whether a function may ask for it. Kubernetes' own domain has none
// that nodes count as whole things.
func knownResource(name corev1.ResourceName) bool {
	if slices.ContainsFunc(amounts, func(kind amountOf) bool { return kind.name == name }) {
		return true
	}
	text := string(name)
	return extended(name) && len(text) <= maxResourceName && !strings.Contains(text, "kubernetes.io/") &&
		!strings.HasPrefix(text, "requests.") && len(validation.IsQualifiedName(text)) == 0
}

// validateExtended checks extended resources: a pod requests exactly what it is limited to.
func validateExtended(at *field.Path, r *Resources) field.ErrorList {
	var errs field.ErrorList
	for _, list := range []struct {
		at   *field.Path
		list corev1.ResourceList
	}{{at.Child("requests"), r.Requests}, {at.Child("limits"), r.Limits}} {
		for _, name := range slices.Sorted(maps.Keys(list.list)) {
			if q := list.list[name]; extended(name) && !whole(q) {
				errs = append(errs, field.Invalid(list.at.Key(string(name)), q.String(),
					"an extended resource is a whole number of 1 or more; write for example "+string(name)+": 1"))
			}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(r.Requests)) {
		request := r.Requests[name]
		if limit, limited := r.Limits[name]; extended(name) && (!limited || limit.Cmp(request) != 0) {
			errs = append(errs, field.Invalid(at.Child("requests").Key(string(name)), request.String(),
				"an extended resource is requested as much as it is limited to; write it in resources.limits alone"))
		}
	}
	return errs
}

// whole says whether q is a whole number of 1 to MaxExtended.
func whole(q resource.Quantity) bool {
	n, isWhole := q.AsInt64()
	return isWhole && n >= 1 && n <= MaxExtended
}
