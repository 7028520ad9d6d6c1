package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// Rollout says how a new revision comes into use.
//
// +kubebuilder:validation:XValidation:rule="!has(self.steps) || (has(self.strategy) && self.strategy == 'Steps')",fieldPath=".steps",reason=FieldValueForbidden,message="need strategy: Steps; add it, or remove the steps"
// +kubebuilder:validation:XValidation:rule="!has(self.strategy) || self.strategy != 'Steps' || has(self.steps)",fieldPath=".steps",reason=FieldValueRequired,message="strategy: Steps needs steps; write for example [{weight: 10, hold: 10m}]"
type Rollout struct {
	// verify is how a new revision is proven before it gets calls. OneInstance:
	// one of its instances must start. None: it gets calls at once. The first
	// revision of a function gets calls at once in any case. The default is
	// OneInstance. More values may come.
	// +optional
	// +kubebuilder:default=OneInstance
	Verify Verification `json:"verify,omitempty"`
	// progressDeadline is how long starts of a new revision may fail until the
	// function is Stalled, 1s to 24h. Windlass keeps trying. A first start that is
	// still under way has until template.startupTimeout. The default is 2m.
	// +optional
	// +kubebuilder:default="2m"
	// +kubebuilder:validation:XValidation:rule="self.matches('^([0-9]{1,5}(h|m|s|ms)){1,4}$') && duration(self) >= duration('1s') && duration(self) <= duration('24h')",message="must be a duration of 1s to 24h; write for example 2m"
	ProgressDeadline Duration `json:"progressDeadline,omitzero"`
	// strategy is how calls move to a revision that is proven. Immediate: all at
	// once. Steps: in the shares that steps lists. The default is Immediate. More
	// values may come.
	// +optional
	// +kubebuilder:default=Immediate
	Strategy RolloutStrategy `json:"strategy,omitempty"`
	// steps are 1 to 16 shares of the calls that a new revision gets, one after
	// the other, before it gets all of them. A revision that had all calls before
	// takes no steps.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=16
	Steps []RolloutStep `json:"steps,omitempty"`
}

// Verification is a way to prove a revision.
//
// +kubebuilder:validation:Enum=OneInstance;None
type Verification string

const (
	// VerifyOneInstance starts one instance of a revision before calls go to it.
	VerifyOneInstance Verification = "OneInstance"
	// VerifyNone lets calls go to a revision of which no instance has started.
	VerifyNone Verification = "None"
)

// RolloutStrategy is a way to move calls from one revision to another.
//
// +kubebuilder:validation:Enum=Immediate;Steps
type RolloutStrategy string

const (
	// RolloutImmediate moves all calls at once.
	RolloutImmediate RolloutStrategy = "Immediate"
	// RolloutSteps moves them in parts.
	RolloutSteps RolloutStrategy = "Steps"
)

// RolloutStep gives a new revision a share of the calls for a time.
type RolloutStep struct {
	// weight is the share of the calls that goes to the new revision, 1 to 99
	// percent.
	// +required
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=99
	Weight int32 `json:"weight,omitempty"`
	// hold is how long this step lasts, 1s to 168h.
	// +required
	// +kubebuilder:validation:XValidation:rule="self.matches('^([0-9]{1,5}(h|m|s|ms)){1,4}$') && duration(self) >= duration('1s') && duration(self) <= duration('168h')",message="must be a duration of 1s to 168h; write for example 10m"
	Hold Duration `json:"hold,omitzero"`
}

// TrafficTarget is a share of a function's calls, and the revision that gets
// it.
type TrafficTarget struct {
	// tag is a name for this share. Calls with the header "Windlass-Tag: TAG", and
	// those to the tag's own host where functions have hosts, go to its revision,
	// whatever the weight.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?$')",message="must be lower-case letters, digits and hyphens, with a letter or digit at both ends; write for example next"
	Tag string `json:"tag,omitempty"`
	// revisionName is the FunctionRevision that gets this share. Without it, that
	// is the latest one that is proven.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	RevisionName string `json:"revisionName,omitempty"`
	// weight is the share of the calls that name no tag, 0 to 100 percent. All
	// weights together are 100.
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=100
	Weight int32 `json:"weight,omitempty"`
}

// TrafficStatus is a share of a function's calls as it is now.
type TrafficStatus struct {
	// tag is the name of this share. It is empty without spec.traffic.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	Tag string `json:"tag,omitempty"`
	// revisionName is the FunctionRevision that gets this share.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	RevisionName string `json:"revisionName,omitempty"`
	// weight is the share of the calls, in percent.
	// +optional
	Weight int32 `json:"weight"`
	// url is the URL of the tag. It is empty if the tag has no host of its own; call
	// such a tag with the header Windlass-Tag.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=2048
	URL string `json:"url,omitempty"`
}

// RolloutStatus is how far the latest revision has come.
type RolloutStatus struct {
	// revisionName is the revision that calls move to, or have moved to.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	RevisionName string `json:"revisionName,omitempty"`
	// stableRevisionName is the revision that has the other calls until
	// revisionName has them all. It is empty after that.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	StableRevisionName string `json:"stableRevisionName,omitempty"`
	// step is the number of the present step, from 1. It is 0 before the first
	// step and after the last.
	// +optional
	Step int32 `json:"step"`
	// since is when the present step began.
	// +optional
	Since metav1.Time `json:"since,omitzero"`
}

// FunctionRevision is a record of a Function's template at one time. Windlass
// makes it from spec.template of the Function, and the pods of the function
// belong to it.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:shortName=wfnrev,categories=windlass
// +kubebuilder:subresource:status
// +kubebuilder:subresource:scale:specpath=.spec.instances,statuspath=.status.instances.ready,selectorpath=.status.selector
// +kubebuilder:printcolumn:name="Function",type=string,JSONPath=`.spec.functionName`
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`,description="Whether an instance of it has started"
// +kubebuilder:printcolumn:name="Reason",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].reason`,description="Why it is ready or not"
// +kubebuilder:printcolumn:name="Active",type=string,JSONPath=`.status.conditions[?(@.type=="Active")].status`,description="Whether calls go to it"
// +kubebuilder:printcolumn:name="Instances",type=integer,JSONPath=`.status.instances.ready`,description="Instances that can be called"
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type FunctionRevision struct {
	metav1.TypeMeta `json:",inline"`
	// metadata is that of every object.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitzero"`

	// spec describes the revision. Only instances ever changes.
	// +required
	Spec FunctionRevisionSpec `json:"spec,omitzero"`
	// status is what Windlass observes of the revision.
	// +optional
	Status FunctionRevisionStatus `json:"status,omitzero"`
}

// FunctionRevisionList is a list of FunctionRevisions.
//
// +kubebuilder:object:root=true
type FunctionRevisionList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitzero"`

	Items []FunctionRevision `json:"items"`
}

// FunctionRevisionSpec is what the revision is.
//
// +kubebuilder:validation:XValidation:rule="self.template == oldSelf.template && self.functionName == oldSelf.functionName && self.number == oldSelf.number",message="a revision does not change; change spec.template of the Function, which makes another one"
type FunctionRevisionSpec struct {
	// functionName is the Function that this is a revision of, in the same
	// namespace.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	FunctionName string `json:"functionName,omitempty"`
	// number is the metadata.generation of the Function that made this revision. A
	// later revision has a higher number.
	// +required
	// +kubebuilder:validation:Minimum=1
	Number int64 `json:"number,omitempty"`
	// template describes an instance of the revision.
	// +required
	Template FunctionTemplate `json:"template,omitzero"`
	// instances is the desired number of instances. Windlass writes it, for the
	// scale subresource; a change by others has no effect. The default is 0.
	// +optional
	// +kubebuilder:default=0
	// +kubebuilder:validation:Minimum=0
	Instances int32 `json:"instances,omitempty"`
}

// FunctionRevisionStatus is what Windlass observes of a FunctionRevision.
type FunctionRevisionStatus struct {
	// conditions are Ready, which says that an instance of the revision has
	// started, and Active, which says that calls go to it.
	// +optional
	// +listType=map
	// +listMapKey=type
	// +kubebuilder:validation:MaxItems=16
	Conditions []metav1.Condition `json:"conditions,omitempty"`
	// instances counts the instances of the revision.
	// +optional
	Instances RevisionInstances `json:"instances"`
	// selector selects the pods of the revision, for the scale subresource.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=2048
	Selector string `json:"selector,omitempty"`
	// imageID is the image that the first instance of the revision ran, with the digest, as
	// its node reported, such as example.com/team/function@sha256:... It stays, though a node
	// may later find another image under a tag that was moved. With a runtimeRef it is the
	// image of the runtime. Local mode has none.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=2048
	ImageID string `json:"imageID,omitempty"`
	// fullTrafficTime is when the revision had all calls of its function for the
	// first time.
	// +optional
	FullTrafficTime metav1.Time `json:"fullTrafficTime,omitzero"`
}

// RevisionInstances counts the instances of a revision.
type RevisionInstances struct {
	// ready instances can be called.
	// +optional
	Ready int32 `json:"ready"`
}
