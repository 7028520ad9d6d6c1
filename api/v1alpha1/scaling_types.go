package v1alpha1

// Scaling bounds the number of instances and says when they leave.
//
// +kubebuilder:validation:XValidation:rule="!has(self.minInstances) || !has(self.maxInstances) || self.minInstances <= self.maxInstances",fieldPath=".minInstances",message="must not be more than maxInstances; lower it, or raise scaling.maxInstances"
// +kubebuilder:validation:XValidation:rule="!has(self.windows) || !has(self.maxInstances) || self.windows.all(w, w.minInstances <= self.maxInstances)",fieldPath=".windows",message="minInstances of a window must not be more than maxInstances; lower it, or raise scaling.maxInstances"
type Scaling struct {
	// minInstances are kept even when nothing is called, at most maxInstances. The
	// default is 0.
	// +optional
	// +kubebuilder:default=0
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=100000
	MinInstances int32 `json:"minInstances,omitempty"`
	// maxInstances exist at a time, 1 or more. Without it, there is no other bound than
	// the room on the nodes.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=100000
	MaxInstances *int32 `json:"maxInstances,omitempty"`
	// windows are times that come again, in which more instances are kept.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=16
	Windows []ScalingWindow `json:"windows,omitempty"`
	// scaleDown says when idle instances leave.
	// +optional
	// +kubebuilder:default={}
	ScaleDown ScaleDown `json:"scaleDown,omitzero"`
}

// ScaleDown says how long instances are kept that run no call.
type ScaleDown struct {
	// policy is Fixed, for the times below; or Learned, for what the function's own idle
	// times teach, and for the times below until they teach something: instances leave
	// before the next call is likely, one is started ahead of it, and kept for as long as
	// it is likely. The default is Fixed. More values may come.
	// +optional
	// +kubebuilder:default=Fixed
	Policy ScaleDownPolicy `json:"policy,omitempty"`
	// idleTimeout is how long an instance is idle before it leaves, and lastInstanceIdleTimeout
	// how long the last one is. The default is 10m (FPCSch V-A). One that has been idle for
	// ten seconds saves memory and connections already.
	// +optional
	// +kubebuilder:default="10m"
	// +kubebuilder:validation:XValidation:rule="self.matches('^([0-9]{1,5}(h|m|s|ms)){1,4}$') && duration(self) > duration('0s')",message="must be a duration of more than 0; write for example 10m"
	IdleTimeout Duration `json:"idleTimeout,omitzero"`
	// lastInstanceIdleTimeout is how long the last instance of the function is idle before
	// it leaves too. The default is 1h (FPCSch IV-C).
	// +optional
	// +kubebuilder:default="1h"
	// +kubebuilder:validation:XValidation:rule="self.matches('^([0-9]{1,5}(h|m|s|ms)){1,4}$') && duration(self) > duration('0s')",message="must be a duration of more than 0; write for example 1h"
	LastInstanceIdleTimeout Duration `json:"lastInstanceIdleTimeout,omitzero"`
}

// ScaleDownPolicy is a way to decide how long idle instances are kept.
//
// +kubebuilder:validation:Enum=Fixed;Learned
type ScaleDownPolicy string

const (
	// ScaleDownFixed keeps them for the times that the manifest says.
	ScaleDownFixed ScaleDownPolicy = "Fixed"
	// ScaleDownLearned learns from the function's idle times when its next call is likely.
	ScaleDownLearned ScaleDownPolicy = "Learned"
)

// ScalingWindow is a time that comes again, in which a function has more instances at
// least.
type ScalingWindow struct {
	// name of the window, for people and for tools that change one of several.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?$')",message="must be lower-case letters, digits and hyphens, with a letter or digit at both ends; write for example office-hours"
	Name string `json:"name,omitempty"`
	// start says when it begins, as five fields of cron: minute, hour, day of month,
	// month, day of week.
	// +required
	// +kubebuilder:validation:MaxLength=128
	// +kubebuilder:validation:XValidation:rule="self.matches('^[[:space:]]*[0-9A-Za-z*?,/-]+([[:space:]]+[0-9A-Za-z*?,/-]+){4}[[:space:]]*$')",message="must be five fields of cron: minute, hour, day of month, month, day of week; write for example 0 8 * * 1-5"
	Start string `json:"start,omitempty"`
	// duration is how long it lasts, 1m to 168h.
	// +required
	// +kubebuilder:validation:XValidation:rule="self.matches('^([0-9]{1,5}(h|m|s|ms)){1,4}$') && duration(self) >= duration('1m') && duration(self) <= duration('168h')",message="must be a duration of 1m to 168h; write for example 10h"
	Duration Duration `json:"duration,omitzero"`
	// timeZone of start, a name of the IANA database. The default is UTC.
	// +optional
	// +kubebuilder:validation:MinLength=0
	// +kubebuilder:validation:MaxLength=64
	// +kubebuilder:validation:XValidation:rule="self.matches('^([A-Za-z][0-9A-Za-z_+-]*(/[0-9A-Za-z_+-]+)*)?$') && self != 'Local'",message="must be a name of the IANA time zone database; write for example Europe/Berlin, or remove timeZone for UTC"
	TimeZone string `json:"timeZone,omitempty"`
	// minInstances is how many instances are kept meanwhile, 1 to 100000. The highest of
	// all windows and of scaling.minInstances counts; scaling.maxInstances bounds it.
	// +required
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=100000
	MinInstances int32 `json:"minInstances,omitempty"`
}
