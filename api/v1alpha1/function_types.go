package v1alpha1

import (
	"github.com/windlass-dev/windlass/api/wellknown"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

const (
	// GroupName is the API group of every Windlass kind.
	GroupName = wellknown.Group
	// APIVersion is what a manifest's apiVersion field says.
	APIVersion = GroupName + "/v1alpha1"
	// KindFunction is what a Function manifest's kind field says.
	KindFunction = "Function"
	// KindFunctionRevision is that of the records of what a Function was.
	KindFunctionRevision = "FunctionRevision"
	// DefaultNamespace is the namespace of a Function that names none.
	DefaultNamespace = "default"
)

// Protocol is the way in which the agent hands a call to the function.
//
// +kubebuilder:validation:Enum=HTTP;LambdaRuntime
type Protocol string

const (
	// ProtocolHTTP calls a plain HTTP server that listens on $PORT.
	ProtocolHTTP Protocol = "HTTP"
	// ProtocolLambdaRuntime serves the AWS Lambda Runtime API, from which
	// the function's runtime client pulls its events.
	ProtocolLambdaRuntime Protocol = "LambdaRuntime"
)

// RuntimeName names a language runtime, so that a function can be a handler
// instead of a server: one that Windlass brings along or, in a cluster, any
// ClusterRuntime.
//
// +kubebuilder:validation:MinLength=1
// +kubebuilder:validation:MaxLength=63
// +kubebuilder:validation:XValidation:rule="self.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?([.][a-z0-9]([-a-z0-9]*[a-z0-9])?)*$')",message="must be the name of a ClusterRuntime, in lower-case letters, digits, hyphens and dots; write for example python3.13"
type RuntimeName string

const (
	// RuntimePython313 runs a Python 3.13 handler with the standard library only.
	RuntimePython313 RuntimeName = "python3.13"
	// RuntimeNodeJS22 runs a Node.js 22 handler with built-in modules only.
	RuntimeNodeJS22 RuntimeName = "nodejs22.x"
)

// Function is code that Windlass runs when it is called. Its calls wait in a
// queue of its own, and its instances take them from there.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:shortName=wfn;fn,categories=windlass
// +kubebuilder:subresource:status
// +kubebuilder:subresource:scale:specpath=.spec.scaling.minInstances,statuspath=.status.instances.ready,selectorpath=.status.selector
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`,description="Whether the function can be called"
// +kubebuilder:printcolumn:name="Reason",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].reason`,description="Why the function is ready or not"
// +kubebuilder:printcolumn:name="Revision",type=string,JSONPath=`.status.latestReadyRevisionName`,description="The last revision that was proven"
// +kubebuilder:printcolumn:name="Instances",type=integer,JSONPath=`.status.instances.ready`,description="Instances that can be called"
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:printcolumn:name="Image",type=string,priority=1,JSONPath=`.spec.template.image`
// +kubebuilder:printcolumn:name="Runtime",type=string,priority=1,JSONPath=`.spec.template.runtimeRef.name`
// +kubebuilder:printcolumn:name="URL",type=string,priority=1,JSONPath=`.status.url`
// +kubebuilder:validation:XValidation:rule="self.metadata.name.matches('^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$')",fieldPath=".metadata",message="name must be 1 to 63 lower-case letters, digits and hyphens, with a letter or digit at both ends; write for example my-function"
type Function struct {
	metav1.TypeMeta `json:",inline"`
	// metadata is that of every object.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitzero"`

	// spec says what an instance runs (template), how Windlass treats calls
	// (calls), how many instances there are (scaling), how a change takes effect
	// (rollout, traffic), and which hosts the function has (expose).
	// +required
	Spec FunctionSpec `json:"spec,omitzero"`
	// status is what Windlass observes of the function.
	// +optional
	// +kubebuilder:default={conditions: {{type: "Ready", status: "Unknown", reason: "Pending", message: "no controller has looked at the function yet", lastTransitionTime: "1970-01-01T00:00:00Z"}}}
	Status FunctionStatus `json:"status,omitzero"`
}

// FunctionList is a list of Functions.
//
// +kubebuilder:object:root=true
type FunctionList struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ListMeta `json:"metadata,omitzero"`

	// +required
	Items []Function `json:"items"`
}

// FunctionSpec is what one instance is, how calls are treated, how many instances there
// are, how a change comes into use, and where the function can be called.
//
// +kubebuilder:validation:XValidation:rule="!has(self.traffic) || !has(self.rollout) || !has(self.rollout.strategy) || self.rollout.strategy != 'Steps'",fieldPath=".traffic",reason=FieldValueForbidden,message="traffic and rollout.strategy Steps exclude each other: both say where calls go; remove one of them"
type FunctionSpec struct {
	// template describes an instance. A change of it makes a new revision of the
	// function; a change of anything else does not, and replaces no instance.
	// +required
	Template FunctionTemplate `json:"template,omitzero"`
	// calls says how Windlass treats calls of the function. A change takes effect
	// at once.
	// +optional
	// +kubebuilder:default={}
	Calls Calls `json:"calls,omitzero"`
	// scaling says how many instances there are. A change takes effect at once.
	// +optional
	// +kubebuilder:default={}
	Scaling Scaling `json:"scaling,omitzero"`
	// rollout says how a new revision is proven, and how calls move to it.
	// +optional
	// +kubebuilder:default={}
	Rollout Rollout `json:"rollout,omitzero"`
	// traffic divides the calls between revisions. Without it, all calls go to the
	// latest revision that is proven. It excludes rollout.strategy Steps.
	// +optional
	// +listType=map
	// +listMapKey=tag
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=16
	// +kubebuilder:validation:XValidation:rule="self.map(t, has(t.weight) ? t.weight : 0).sum() == 100",message="the weights together must be 100; write for example [{tag: live, weight: 100}]"
	Traffic []TrafficTarget `json:"traffic,omitempty"`
	// expose says where the function can be called, besides where all functions can.
	// +optional
	Expose Expose `json:"expose,omitzero"`
	// revisionHistoryLimit is how many revisions are kept, 0 to 100, besides the
	// latest one and those that have calls. windlass rollout undo can return to
	// them. The default is 10.
	// +optional
	// +kubebuilder:default=10
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=100
	RevisionHistoryLimit *int32 `json:"revisionHistoryLimit,omitempty"`
}

// Calls says how the calls of a function are treated, of all callers together. A field
// that is zero counts as left out. In a manifest, the API server refuses numbers and durations
// that are written as zero.
type Calls struct {
	// maxInFlight is how many calls may wait or run at the same time, 1 to
	// 1000000. Further calls are refused with status 429. The default is no limit.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=1000000
	MaxInFlight int32 `json:"maxInFlight,omitempty"`
	// rate limits how many calls are taken. Further calls are refused with status
	// 429. The default is no limit.
	// +optional
	Rate Rate `json:"rate,omitzero"`
	// queueTimeout is how long a call may wait for an instance, 10ms to 24h, such
	// as 30s. A call that waits longer is refused, and has not run. The default is
	// 1m.
	// +optional
	// +kubebuilder:validation:XValidation:rule="self.matches('^([0-9]{1,5}(h|m|s|ms)){1,4}$') && duration(self) >= duration('10ms') && duration(self) <= duration('24h')",message="must be a duration of 10ms to 24h; write for example 5s"
	QueueTimeout Duration `json:"queueTimeout,omitzero"`
	// delivery is how often a call may run. AtMostOnce: never a second time.
	// AtLeastOnce: a call whose instance is lost runs again, up to two times;
	// choose it only where running a call twice does no harm. The default is AtMostOnce. More values
	// may come.
	// +optional
	// +kubebuilder:default=AtMostOnce
	Delivery Delivery `json:"delivery,omitempty"`
	// onClientDisconnect is what happens to a running call when its client hangs
	// up. Continue: it runs to its end. Cancel: the connection to the function is
	// closed, and the instance is replaced, because the function may still work on
	// the call; this pays off for calls that run for long. The default is
	// Continue.
	// +optional
	// +kubebuilder:default=Continue
	OnClientDisconnect OnClientDisconnect `json:"onClientDisconnect,omitempty"`
}

// Rate bounds how many calls are taken: requests in each period in the long run, and
// burst at once.
type Rate struct {
	// requests is how many calls are taken in each period, 1 to 1000000.
	// +required
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=1000000
	Requests int32 `json:"requests,omitempty"`
	// period is the time over which requests are counted, 1s to 24h. The default
	// is 1s.
	// +optional
	// +kubebuilder:default="1s"
	// +kubebuilder:validation:XValidation:rule="self.matches('^([0-9]{1,5}(h|m|s|ms)){1,4}$') && duration(self) >= duration('1s') && duration(self) <= duration('24h')",message="must be a duration of 1s to 24h; write for example 1m"
	Period Duration `json:"period,omitzero"`
	// burst is how many calls are taken at once after a quiet time, 1 to 1000000.
	// The default is the number of requests.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=1000000
	Burst int32 `json:"burst,omitempty"`
}

// Delivery says how often a call may run.
//
// +kubebuilder:validation:Enum=AtMostOnce;AtLeastOnce
type Delivery string

const (
	// DeliveryAtMostOnce never runs a call a second time.
	DeliveryAtMostOnce Delivery = "AtMostOnce"
	// DeliveryAtLeastOnce runs a call again when it may not have run to its end.
	DeliveryAtLeastOnce Delivery = "AtLeastOnce"
)

// OnClientDisconnect says what becomes of a running call whose client has gone.
//
// +kubebuilder:validation:Enum=Continue;Cancel
type OnClientDisconnect string

const (
	// OnClientDisconnectContinue lets it run to its end.
	OnClientDisconnectContinue OnClientDisconnect = "Continue"
	// OnClientDisconnectCancel ends it.
	OnClientDisconnectCancel OnClientDisconnect = "Cancel"
)

// MayRepeat tells whether a call may run more than once.
func (c *Calls) MayRepeat() bool { return c.Delivery == DeliveryAtLeastOnce }

// Limited tells whether calls are counted against a limit. Then each passes its scheduler, and no instance
// lends pulls to gateways.
func (c *Calls) Limited() bool { return c.MaxInFlight > 0 || c.Rate.Requests > 0 }

// CancelOnDisconnect tells whether a call ends when its client has gone.
func (c *Calls) CancelOnDisconnect() bool { return c.OnClientDisconnect == OnClientDisconnectCancel }

// FunctionStatus is what Windlass observes of a Function.
type FunctionStatus struct {
	// conditions are Ready, Accepted, RevisionReady and MinInstancesReady; while
	// they are true, Reconciling, Stalled and InstancesFailing; HostsAccepted if the
	// function asks for hosts, or can have none; and SchedulingClass if it asks for
	// LatencyCritical, or for another class or a slice that has no effect.
	// +optional
	// +listType=map
	// +listMapKey=type
	// +kubebuilder:validation:MaxItems=32
	Conditions []metav1.Condition `json:"conditions,omitempty"`
	// latestCreatedRevisionName is the FunctionRevision of the present
	// spec.template.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	LatestCreatedRevisionName string `json:"latestCreatedRevisionName,omitempty"`
	// latestReadyRevisionName is the latest FunctionRevision that is proven.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	LatestReadyRevisionName string `json:"latestReadyRevisionName,omitempty"`
	// traffic is where calls go now.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=32
	Traffic []TrafficStatus `json:"traffic,omitempty"`
	// rollout is how far the latest revision has come.
	// +optional
	Rollout RolloutStatus `json:"rollout,omitzero"`
	// observedGeneration is the metadata.generation that this status is about.
	// +optional
	// +kubebuilder:validation:Minimum=0
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
	// instances counts the function's instances, of all revisions together. It can be
	// some seconds old. Numbers that change with every call are in metrics, not here.
	// +optional
	Instances InstanceCounts `json:"instances"`
	// url is where the function can be called.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=2048
	URL string `json:"url,omitempty"`
	// hosts are the hosts of spec.expose.hosts, with their state.
	// +optional
	// +listType=map
	// +listMapKey=hostname
	// +kubebuilder:validation:MaxItems=16
	Hosts []HostStatus `json:"hosts,omitempty"`
	// selector selects the pods of the function, for the scale subresource.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=1024
	Selector string `json:"selector,omitempty"`
}

// InstanceCounts counts instances.
type InstanceCounts struct {
	// ready instances can be called.
	// +optional
	// +kubebuilder:validation:Minimum=0
	Ready int32 `json:"ready"`
	// desired is how many are ready or being created.
	// +optional
	// +kubebuilder:validation:Minimum=0
	Desired int32 `json:"desired"`
}
