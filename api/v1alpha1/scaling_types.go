package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// Scaling bounds the number of instances and says when they leave.
//
// +kubebuilder:validation:XValidation:rule="!has(self.min) || !has(self.max) || self.min <= self.max",fieldPath=".min",message="must not be more than max; lower it, or raise scaling.max"
// +kubebuilder:validation:XValidation:rule="!has(self.schedule) || !has(self.max) || self.schedule.all(w, w.min <= self.max)",fieldPath=".schedule",message="min of a window must not be more than max; lower it, or raise scaling.max"
type Scaling struct {
	// Min instances are kept even when nothing is called, at most Max. The
	// default is 0.
	// +kubebuilder:default=0
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=100000
	Min int32 `json:"min,omitempty"`
	// Max instances exist at a time, 1 or more; nil means no other bound
	// than the capacity of the nodes.
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=100000
	Max *int32 `json:"max,omitempty"`
	// BackoffAfter is how long an instance is idle before it closes
	// connections that it does not use and gives memory back. The default is 10s.
	// +kubebuilder:default="10s"
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:XValidation:rule="self.matches('^([0-9]+([.][0-9]+)?(ns|us|µs|μs|ms|s|m|h))+$') && duration(self) > duration('0s')",message="must be a duration of more than 0; write for example 10s"
	BackoffAfter metav1.Duration `json:"backoffAfter,omitzero"`
	// IdleTimeout is how much longer it is idle before it leaves. The default is 10m (FPCSch V-A).
	// +kubebuilder:default="10m"
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:XValidation:rule="self.matches('^([0-9]+([.][0-9]+)?(ns|us|µs|μs|ms|s|m|h))+$') && duration(self) > duration('0s')",message="must be a duration of more than 0; write for example 10m"
	IdleTimeout metav1.Duration `json:"idleTimeout,omitzero"`
	// KeepLast is how long the last instance of the function waits before
	// it leaves too. The default is 1h (FPCSch IV-C).
	// +kubebuilder:default="1h"
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:XValidation:rule="self.matches('^([0-9]+([.][0-9]+)?(ns|us|µs|μs|ms|s|m|h))+$') && duration(self) > duration('0s')",message="must be a duration of more than 0; write for example 1h"
	KeepLast metav1.Duration `json:"keepLast,omitzero"`
	// KeepAlive says how long instances without calls are kept: Fixed, for
	// the times above; or Histogram, for what the function's own idle times
	// teach, and for the times above until they teach something. The default
	// is Fixed.
	// +kubebuilder:default=Fixed
	KeepAlive KeepAliveName `json:"keepAlive,omitempty"`
	// Schedule raises min in windows of time that come again.
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=16
	Schedule []ScheduleWindow `json:"schedule,omitempty"`
}

// KeepAliveName names a way to decide how long idle instances are kept.
//
// +kubebuilder:validation:Enum=Fixed;Histogram
type KeepAliveName string

const (
	// KeepAliveFixed keeps them for IdleTimeout and KeepLast.
	KeepAliveFixed KeepAliveName = "Fixed"
	// KeepAliveHistogram learns from the function's idle times when its next
	// call is likely: instances leave before, one is started ahead of it, and
	// kept for as long as it is likely.
	KeepAliveHistogram KeepAliveName = "Histogram"
)

// ScheduleWindow is a time that comes again, in which a function has more
// instances at least.
type ScheduleWindow struct {
	// Start says when it begins, as five fields of cron: minute, hour, day of
	// month, month, day of week.
	// +kubebuilder:validation:MaxLength=128
	// +kubebuilder:validation:XValidation:rule="self.matches('^[[:space:]]*[0-9A-Za-z*?,/-]+([[:space:]]+[0-9A-Za-z*?,/-]+){4}[[:space:]]*$')",message="must be five fields of cron: minute, hour, day of month, month, day of week; write for example 0 8 * * 1-5"
	Start string `json:"start"`
	// Duration is how long it lasts, 1m to 168h.
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:XValidation:rule="self.matches('^([0-9]+([.][0-9]+)?(ns|us|µs|μs|ms|s|m|h))+$') && duration(self) >= duration('1m') && duration(self) <= duration('168h')",message="must be a duration of 1m to 168h; write for example 10h"
	Duration metav1.Duration `json:"duration"`
	// TimeZone of Start, a name of the IANA database. The default is UTC.
	// +kubebuilder:validation:MaxLength=64
	// +kubebuilder:validation:XValidation:rule="self.matches('^([A-Za-z][0-9A-Za-z_+-]*(/[0-9A-Za-z_+-]+)*)?$') && self != 'Local'",message="must be a name of the IANA time zone database; write for example Europe/Berlin, or remove timeZone for UTC"
	TimeZone string `json:"timeZone,omitempty"`
	// Min is how many instances are kept meanwhile, 1 to 100000. The highest
	// of all windows and of scaling.min counts; scaling.max bounds it.
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=100000
	Min int32 `json:"min"`
}

// Limits bound the calls that a function takes. Further ones are refused with 429.
//
// +kubebuilder:validation:XValidation:rule="!has(self.burst) || has(self.ratePerSecond)",fieldPath=".burst",reason=FieldValueForbidden,message="needs limits.ratePerSecond; add it, or remove burst"
type Limits struct {
	// Concurrency is how many calls may wait and run at a time, 1 to 1000000.
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=1000000
	Concurrency int32 `json:"concurrency,omitempty"`
	// RatePerSecond is how many calls are taken in a second in the long run, 1
	// to 1000000.
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=1000000
	RatePerSecond int32 `json:"ratePerSecond,omitempty"`
	// Burst is how many calls are taken at once, 1 to 1000000. The default is
	// RatePerSecond.
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=1000000
	Burst int32 `json:"burst,omitempty"`
}
