package v1alpha1

import (
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/util/validation/field"
)

// Bounds of Calls, inclusive.
const (
	MaxLimit  int32 = 1_000_000
	MinPeriod       = time.Second
	MaxPeriod       = 24 * time.Hour
)

func validateCalls(at *field.Path, c *Calls) field.ErrorList {
	errs := validateLimit(at.Child("maxInFlight"), c.MaxInFlight)
	errs = append(errs, validateRate(at.Child("rate"), &c.Rate)...)
	if c.QueueTimeout != (Duration{}) {
		errs = append(errs, validateDuration(at.Child("queueTimeout"), c.QueueTimeout, MinTimeout, MaxTimeout)...)
	}
	if !slices.Contains(deliveries, c.Delivery) {
		errs = append(errs, field.NotSupported(at.Child("delivery"), c.Delivery, deliveries))
	}
	if !slices.Contains(disconnects, c.OnClientDisconnect) {
		errs = append(errs, field.NotSupported(at.Child("onClientDisconnect"), c.OnClientDisconnect, disconnects))
	}
	return errs
}

func validateRate(at *field.Path, r *Rate) field.ErrorList {
	if *r == (Rate{}) {
		return nil
	}
	errs := validateLimit(at.Child("requests"), r.Requests)
	if r.Requests == 0 {
		errs = append(errs, field.Required(at.Child("requests"), "write for example requests: 50, or remove rate to have no limit"))
	}
	errs = append(errs, validateDuration(at.Child("period"), r.Period, MinPeriod, MaxPeriod)...)
	return append(errs, validateLimit(at.Child("burst"), r.Burst)...)
}

// validateLimit checks a number that may be left out.
func validateLimit(at *field.Path, limit int32) field.ErrorList {
	if limit >= 0 && limit <= MaxLimit {
		return nil
	}
	return field.ErrorList{field.Invalid(at, limit,
		fmt.Sprintf("must be 1 to %d; write for example 100, or remove %s to have no limit", MaxLimit, lastName(at)))}
}
