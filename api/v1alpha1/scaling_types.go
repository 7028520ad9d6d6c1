package v1alpha1

// Scaling bounds the number of instances and says when they leave.
//
// +kubebuilder:validation:XValidation:rule="!has(self.minInstances) || !has(self.maxInstances) || self.minInstances <= self.maxInstances",fieldPath=".minInstances",message="must not be more than maxInstances; lower it, or raise scaling.maxInstances"
// +kubebuilder:validation:XValidation:rule="!has(self.windows) || !has(self.maxInstances) || self.windows.all(w, w.minInstances <= self.maxInstances)",fieldPath=".windows",message="minInstances of a window must not be more than maxInstances; lower it, or raise scaling.maxInstances"
type Scaling struct {
	// minInstances is how many instances are kept even if nobody calls the
	// function, from 0 to maxInstances. The default is 0.
	// +optional
	// +kubebuilder:default=0
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=100000
	MinInstances int32 `json:"minInstances,omitempty"`
	// maxInstances is how many instances there may be at the same time, 1 to
	// 100000. The default is no limit but the room on the nodes.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=100000
	MaxInstances *int32 `json:"maxInstances,omitempty"`
	// windows are recurring times in which more instances are kept, such as office
	// hours. At most 16.
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
	// policy decides when idle instances leave. Fixed: after idleTimeout and
	// lastInstanceIdleTimeout. Learned: by the times between the function's calls;
	// instances leave if no call is likely soon, and Windlass starts one before a
	// likely call. Until it has seen enough calls, Learned works like Fixed. The
	// default is Fixed. More values may come.
	// +optional
	// +kubebuilder:default=Fixed
	Policy ScaleDownPolicy `json:"policy,omitempty"`
	// idleTimeout is how long an instance may be idle before it leaves, more than
	// 0, such as 90s. The last instance has lastInstanceIdleTimeout instead. The
	// default is 10m. After ten idle seconds, an instance already releases memory
	// and connections.
	// +optional
	// +kubebuilder:default="10m"
	// +kubebuilder:validation:XValidation:rule="self.matches('^([0-9]{1,5}(h|m|s|ms)){1,4}$') && duration(self) > duration('0s')",message="must be a duration of more than 0; write for example 10m"
	IdleTimeout Duration `json:"idleTimeout,omitzero"`
	// lastInstanceIdleTimeout is how long the last instance of the function may be
	// idle before it leaves too, more than 0. The default is 1h.
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

// ScalingWindow is a recurring time in which a function has a higher minimum
// of instances.
type ScalingWindow struct {
	// name is the name of the window, which no other window of the function has:
	// at most 63 lower-case letters, digits and hyphens.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?$')",message="must be lower-case letters, digits and hyphens, with a letter or digit at both ends; write for example office-hours"
	Name string `json:"name,omitempty"`
	// start is when the window opens, as the five fields of cron: minute, hour,
	// day of month, month, day of week. "0 8 * * 1-5" is at 8:00 from Monday to
	// Friday.
	// +required
	// +kubebuilder:validation:MaxLength=128
	// +kubebuilder:validation:XValidation:rule="self.matches('^[[:space:]]*[0-9A-Za-z*?,/-]+([[:space:]]+[0-9A-Za-z*?,/-]+){4}[[:space:]]*$')",message="must be five fields of cron: minute, hour, day of month, month, day of week; write for example 0 8 * * 1-5"
	Start string `json:"start,omitempty"`
	// duration is how long the window stays open, 1m to 168h.
	// +required
	// +kubebuilder:validation:XValidation:rule="self.matches('^([0-9]{1,5}(h|m|s|ms)){1,4}$') && duration(self) >= duration('1m') && duration(self) <= duration('168h')",message="must be a duration of 1m to 168h; write for example 10h"
	Duration Duration `json:"duration,omitzero"`
	// timeZone is the time zone of start, by its name in the IANA database, such
	// as Europe/Berlin. The default is UTC.
	// +optional
	// +kubebuilder:validation:MinLength=0
	// +kubebuilder:validation:MaxLength=64
	// +kubebuilder:validation:XValidation:rule="self.matches('^([A-Za-z][0-9A-Za-z_+-]*(/[0-9A-Za-z_+-]+)*)?$') && self != 'Local'",message="must be a name of the IANA time zone database; write for example Europe/Berlin, or remove timeZone for UTC"
	TimeZone string `json:"timeZone,omitempty"`
	// minInstances is how many instances are kept while the window is open, 1 to
	// 100000. The highest number of all open windows and of scaling.minInstances
	// counts; scaling.maxInstances limits it.
	// +required
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=100000
	MinInstances int32 `json:"minInstances,omitempty"`
}
