package v1alpha1

import (
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// Bounds of a Function's fields, inclusive.
const (
	MinConcurrency    int32         = 1
	MaxConcurrency    int32         = 1000
	MinTimeout        time.Duration = 10 * time.Millisecond
	MaxTimeout        time.Duration = 24 * time.Hour
	MinStartupTimeout time.Duration = 100 * time.Millisecond
	MaxStartupTimeout time.Duration = time.Hour
	MinPort           int32         = 1
	MaxPort           int32         = 65535
	MinSlice          time.Duration = 10 * time.Millisecond
	MaxSlice          time.Duration = time.Hour
	// MaxInstances is the most for everything that is a number of instances.
	MaxInstances int32 = 100_000
)

// ReservedPorts are those that an instance's agent listens on.
var ReservedPorts = sets.New[int32](9001, 9090)

func validateRanges(at *field.Path, t *FunctionTemplate) field.ErrorList {
	var errs field.ErrorList
	if t.Concurrency < MinConcurrency || t.Concurrency > MaxConcurrency {
		errs = append(errs, field.Invalid(at.Child("concurrency"), t.Concurrency,
			fmt.Sprintf("must be %d to %d; write for example %d", MinConcurrency, MaxConcurrency,
				min(max(t.Concurrency, MinConcurrency), MaxConcurrency))))
	}
	if t.Port < MinPort || t.Port > MaxPort {
		errs = append(errs, field.Invalid(at.Child("port"), t.Port,
			fmt.Sprintf("must be %d to %d; write for example %d", MinPort, MaxPort, DefaultPort)))
	}
	if ReservedPorts.Has(t.Port) {
		errs = append(errs, field.Invalid(at.Child("port"), t.Port, fmt.Sprintf(
			"the instance's agent uses the ports 9001 and 9090 itself; take another, for example %d", DefaultPort)))
	}
	errs = append(errs, validateDuration(at.Child("timeout"), t.Timeout, MinTimeout, MaxTimeout)...)
	return append(errs, validateDuration(at.Child("startupTimeout"), t.StartupTimeout, MinStartupTimeout, MaxStartupTimeout)...)
}

// validateScheduling checks the class, and that only one that yields after a while has a slice.
func validateScheduling(at *field.Path, s *Scheduling) field.ErrorList {
	var errs field.ErrorList
	if !slices.Contains(schedulingClasses, s.Class) {
		errs = append(errs, field.NotSupported(at.Child("class"), s.Class, schedulingClasses))
	}
	slice := at.Child("slice")
	switch {
	case s.Slice == (Duration{}):
		return errs
	case s.Class == ClassLatencyCritical:
		errs = append(errs, field.Forbidden(slice,
			"calls of class LatencyCritical never yield, so they have no slice; remove slice, or write class: Standard"))
	case s.Class == ClassBatch:
		errs = append(errs, field.Forbidden(slice,
			"calls of class Batch always yield, so they have no slice; remove slice, or write class: Standard"))
	}
	return append(errs, validateDuration(slice, s.Slice, MinSlice, MaxSlice)...)
}

func validateDuration(at *field.Path, d Duration, least, most time.Duration) field.ErrorList {
	if d.Duration >= least && d.Duration <= most {
		return nil
	}
	return field.ErrorList{field.Invalid(at, d.String(),
		fmt.Sprintf("must be %s to %s; write for example %s",
			Duration{least}, Duration{most}, Duration{min(max(d.Duration, least), most)}))}
}

func validateScaling(at *field.Path, s *Scaling) field.ErrorList {
	var errs field.ErrorList
	least := at.Child("minInstances")
	if s.MinInstances < 0 || s.MinInstances > MaxInstances {
		errs = append(errs, field.Invalid(least, s.MinInstances, fmt.Sprintf("must be 0 to %d; write 0 to keep no instance", MaxInstances)))
	}
	if s.MaxInstances != nil && (*s.MaxInstances < 1 || *s.MaxInstances > MaxInstances) {
		errs = append(errs, field.Invalid(at.Child("maxInstances"), *s.MaxInstances,
			fmt.Sprintf("must be 1 to %d; write for example 10, or remove maxInstances to have no bound", MaxInstances)))
	} else if s.MaxInstances != nil && s.MinInstances > *s.MaxInstances {
		errs = append(errs, field.Invalid(least, s.MinInstances,
			fmt.Sprintf("must not be more than maxInstances; lower it to %d, or raise %s", *s.MaxInstances, at.Child("maxInstances"))))
	}
	errs = append(errs, validateWindows(at, s)...)
	return append(errs, validateScaleDown(at.Child("scaleDown"), &s.ScaleDown)...)
}

func validateScaleDown(at *field.Path, s *ScaleDown) field.ErrorList {
	var errs field.ErrorList
	for _, wait := range []struct {
		name    string
		value   Duration
		example time.Duration
	}{
		{"idleTimeout", s.IdleTimeout, DefaultIdleTimeout},
		{"lastInstanceIdleTimeout", s.LastInstanceIdleTimeout, DefaultLastInstanceIdleTimeout},
	} {
		if wait.value.Duration <= 0 {
			errs = append(errs, field.Invalid(at.Child(wait.name), wait.value.String(),
				"must be more than 0; write for example "+Duration{wait.example}.String()))
		}
	}
	if !slices.Contains(scaleDownPolicies, s.Policy) {
		errs = append(errs, field.NotSupported(at.Child("policy"), s.Policy, scaleDownPolicies))
	}
	return errs
}
