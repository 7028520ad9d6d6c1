package v1alpha1

import (
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/util/validation/field"
)

// Bounds of what says how a revision comes into use, inclusive.
const (
	MinHold                 = time.Second
	MaxHold                 = 168 * time.Hour
	MinProgressDeadline     = time.Second
	MaxProgressDeadline     = 24 * time.Hour
	MaxSteps                = 16
	MaxRevisionHistoryLimit = 100
)

var (
	verifications = []Verification{VerifyOneInstance, VerifyNone}
	strategies    = []RolloutStrategy{RolloutImmediate, RolloutSteps}
)

// validateUse checks how revisions of a function come into use.
func validateUse(spec *field.Path, f *Function) field.ErrorList {
	errs := validateRollout(spec.Child("rollout"), &f.Spec.Rollout)
	errs = append(errs, validateTraffic(spec.Child("traffic"), f.Spec.Traffic)...)
	if f.Spec.Traffic != nil && f.Spec.Rollout.Strategy == RolloutSteps {
		errs = append(errs, field.Forbidden(spec.Child("traffic"),
			"traffic and rollout.strategy Steps exclude each other: both say where calls go; remove one of them"))
	}
	if limit := f.Spec.RevisionHistoryLimit; limit != nil && (*limit < 0 || *limit > MaxRevisionHistoryLimit) {
		errs = append(errs, field.Invalid(spec.Child("revisionHistoryLimit"), *limit,
			fmt.Sprintf("must be 0 to %d; write for example %d", MaxRevisionHistoryLimit, DefaultRevisionHistoryLimit)))
	}
	return errs
}

func validateRollout(at *field.Path, r *Rollout) field.ErrorList {
	var errs field.ErrorList
	if !slices.Contains(verifications, r.Verify) {
		errs = append(errs, field.NotSupported(at.Child("verify"), r.Verify, verifications))
	}
	errs = append(errs, validateDuration(at.Child("progressDeadline"), r.ProgressDeadline, MinProgressDeadline, MaxProgressDeadline)...)
	steps := at.Child("steps")
	switch {
	case !slices.Contains(strategies, r.Strategy):
		errs = append(errs, field.NotSupported(at.Child("strategy"), r.Strategy, strategies))
	case r.Strategy == RolloutSteps && len(r.Steps) == 0:
		errs = append(errs, field.Required(steps, "strategy: Steps needs steps; write for example [{weight: 10, hold: 10m}]"))
	case r.Strategy != RolloutSteps && len(r.Steps) > 0:
		errs = append(errs, field.Forbidden(steps, "need strategy: Steps; add it, or remove the steps"))
	}
	if len(r.Steps) > MaxSteps {
		errs = append(errs, field.TooMany(steps, len(r.Steps), MaxSteps))
	}
	for i, step := range r.Steps {
		if step.Weight < 1 || step.Weight > 99 {
			errs = append(errs, field.Invalid(steps.Index(i).Child("weight"), step.Weight, "must be 1 to 99; write for example 10"))
		}
		errs = append(errs, validateDuration(steps.Index(i).Child("hold"), step.Hold, MinHold, MaxHold)...)
	}
	return errs
}

func validateTraffic(at *field.Path, traffic []TrafficTarget) field.ErrorList {
	if traffic == nil {
		return nil
	}
	var errs field.ErrorList
	sum := int32(0)
	for i, target := range traffic {
		errs = append(errs, validateLabel(at.Index(i).Child("tag"), target.Tag, "next")...)
		if slices.ContainsFunc(traffic[:i], func(t TrafficTarget) bool { return t.Tag == target.Tag }) {
			errs = append(errs, field.Duplicate(at.Index(i).Child("tag"), target.Tag))
		}
		if target.Weight < 0 || target.Weight > 100 {
			errs = append(errs, field.Invalid(at.Index(i).Child("weight"), target.Weight, "must be 0 to 100; write for example 10"))
		}
		sum += target.Weight
	}
	if sum != 100 {
		errs = append(errs, field.Invalid(at, sum, "the weights together must be 100; write for example [{tag: live, weight: 100}]"))
	}
	return errs
}
