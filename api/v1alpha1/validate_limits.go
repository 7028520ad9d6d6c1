package v1alpha1

import (
	"fmt"

	"k8s.io/apimachinery/pkg/util/validation/field"
)

// MaxLimit is the highest number in Limits.
const MaxLimit int32 = 1_000_000

func validateLimits(at *field.Path, l *Limits) field.ErrorList {
	var errs field.ErrorList
	for _, limit := range []struct {
		name  string
		value int32
	}{
		{"concurrency", l.Concurrency},
		{"ratePerSecond", l.RatePerSecond},
		{"burst", l.Burst},
	} {
		if limit.value < 0 || limit.value > MaxLimit {
			errs = append(errs, field.Invalid(at.Child(limit.name), limit.value,
				fmt.Sprintf("must be 1 to %d; write for example 100, or remove %s to have no limit", MaxLimit, limit.name)))
		}
	}
	if l.Burst > 0 && l.RatePerSecond == 0 {
		errs = append(errs, field.Forbidden(at.Child("burst"), fmt.Sprintf("needs %s; add it, or remove burst", at.Child("ratePerSecond"))))
	}
	return errs
}
