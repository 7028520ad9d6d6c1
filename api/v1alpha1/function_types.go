package v1alpha1

import (
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

const (
	// GroupName is the API group of every Windlass kind.
	GroupName = "windlass.dev"
	// APIVersion is what a manifest's apiVersion field says.
	APIVersion = GroupName + "/v1alpha1"
	// KindFunction is what a Function manifest's kind field says.
	KindFunction = "Function"
	// DefaultNamespace is the namespace of a Function that names none.
	DefaultNamespace = "default"
)

// Protocol is the way in which the agent hands a call to the function.
type Protocol string

const (
	// ProtocolHTTP calls a plain HTTP server that listens on $PORT.
	ProtocolHTTP Protocol = "HTTP"
	// ProtocolLambdaRuntime serves the AWS Lambda Runtime API, from which
	// the function's runtime client pulls its events.
	ProtocolLambdaRuntime Protocol = "LambdaRuntime"
)

// RuntimeName names a language runtime that Windlass brings along, so that a
// function can be a handler instead of a server.
type RuntimeName string

const (
	// RuntimePython3 runs a Python handler with the standard library only.
	RuntimePython3 RuntimeName = "python3"
	// RuntimeNodeJS runs a Node.js handler with built-in modules only.
	RuntimeNodeJS RuntimeName = "nodejs"
)

// DeciderName names a provisioning algorithm.
type DeciderName string

// DeciderListing1 is the FPCSch algorithm as its paper prints it (Listing 1).
const DeciderListing1 DeciderName = "listing1"

// Function is a piece of code that Windlass runs on demand: it has its own
// queue, and its instances pull from that queue.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
type Function struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitzero"`

	Spec   FunctionSpec   `json:"spec,omitzero"`
	Status FunctionStatus `json:"status,omitzero"`
}

// FunctionList is a list of Functions.
//
// +kubebuilder:object:root=true
type FunctionList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitzero"`

	Items []Function `json:"items"`
}

// FunctionSpec says what to run and how. Exactly one of Image, Command without
// Image, or Runtime says what. A field that is zero counts as left out.
type FunctionSpec struct {
	// Image is the container image of the function. It needs a cluster:
	// local mode runs Command or Runtime.
	Image string `json:"image,omitempty"`
	// Command is the program and its arguments. In local mode it is what
	// runs; with Image it replaces the image's entrypoint.
	Command []string `json:"command,omitempty"`

	// Runtime is a language runtime that Windlass brings along. It needs
	// Handler and Code.
	Runtime RuntimeName `json:"runtime,omitempty"`
	// Handler is the function inside Code, as "module.function". With Command
	// and the protocol LambdaRuntime it is what the runtime client is told
	// in _HANDLER.
	Handler string `json:"handler,omitempty"`
	// Code is the source that Runtime loads: Inline or Path, not both. With
	// Command, Code.Path is the working directory of the program.
	Code *Code `json:"code,omitempty"`

	// Protocol is HTTP or LambdaRuntime. The default is LambdaRuntime for
	// a Runtime and HTTP for everything else.
	Protocol Protocol `json:"protocol,omitempty"`

	// Concurrency is how many calls one instance runs at a time, 1 to
	// 1000. The default is 1.
	Concurrency int32 `json:"concurrency,omitempty"`
	// Timeout is the longest a call may run once an instance has claimed
	// it, 10ms to 24h. The default is 60s.
	Timeout metav1.Duration `json:"timeout,omitzero"`
	// StartupTimeout is the longest that an instance may take from its
	// start until its function can be called, 100ms to 1h. The default
	// is 10s.
	StartupTimeout metav1.Duration `json:"startupTimeout,omitzero"`

	// Resources are what an instance reserves and may use.
	Resources Resources `json:"resources,omitzero"`
	// Env are further environment variables of the function. Names that
	// Windlass sets itself are refused: PORT, _HANDLER, LAMBDA_TASK_ROOT,
	// AWS_LAMBDA_RUNTIME_API and all that begin with WINDLASS_.
	// +listType=map
	// +listMapKey=name
	Env []EnvVar `json:"env,omitempty"`

	// Scaling bounds the number of instances and says when they leave.
	Scaling Scaling `json:"scaling,omitzero"`

	// Idempotent says that running a call twice does no harm. Calls of such
	// a function may be run again when the first run's result is lost.
	Idempotent bool `json:"idempotent,omitempty"`

	// Decider is the provisioning algorithm. The default is listing1.
	Decider DeciderName `json:"decider,omitempty"`
}

// Code is source code, given inline or by a path.
type Code struct {
	// Inline is the source of one module.
	Inline string `json:"inline,omitempty"`
	// Path is a file or a folder. A relative path in a manifest starts at
	// the manifest's own folder.
	Path string `json:"path,omitempty"`
}

// EnvVar is an environment variable.
type EnvVar struct {
	// Name of the variable.
	Name string `json:"name"`
	// Value of the variable, as it is: nothing is expanded.
	Value string `json:"value,omitempty"`
}

// Resources are the compute resources of one instance.
type Resources struct {
	// Requests are reserved on a node. The default is 100m CPU and 64Mi, or
	// the limit where that is lower.
	Requests ResourceList `json:"requests,omitzero"`
	// Limits are not exceeded, and are at least the requests. No limit is
	// set by default.
	Limits ResourceList `json:"limits,omitzero"`
}

// ResourceList is an amount of each kind of resource.
type ResourceList struct {
	// CPU in cores, at least 1m; "250m" is a quarter of one.
	CPU *resource.Quantity `json:"cpu,omitempty"`
	// Memory in bytes, at least 1Mi; "128Mi" is 128 times 2^20.
	Memory *resource.Quantity `json:"memory,omitempty"`
}

// Scaling bounds the number of instances and says when they leave.
type Scaling struct {
	// Min instances are kept even when nothing is called, at most Max. The
	// default is 0.
	Min int32 `json:"min,omitempty"`
	// Max instances exist at a time, 1 or more; nil means no other bound
	// than the capacity of the nodes.
	Max *int32 `json:"max,omitempty"`
	// BackoffAfter is how long an instance waits for a ticket before it
	// renews its pull less often. The default is 10s (FPCSch V-A).
	BackoffAfter metav1.Duration `json:"backoffAfter,omitzero"`
	// IdleTimeout is how much longer it waits, backed off, before it
	// leaves. The default is 10m (FPCSch V-A).
	IdleTimeout metav1.Duration `json:"idleTimeout,omitzero"`
	// KeepLast is how long the last instance of the function waits before
	// it leaves too. The default is 1h (FPCSch IV-C).
	KeepLast metav1.Duration `json:"keepLast,omitzero"`
}

// Condition types of a Function.
const (
	// ConditionReady is true when the function can be called: an instance
	// is there, or the last attempt to start one did not fail.
	ConditionReady = "Ready"
)

// Condition reasons of a Function.
const (
	// ReasonAccepted says that the function is registered and can be called.
	ReasonAccepted = "Accepted"
	// ReasonStartFailed says that the last instance could not start.
	ReasonStartFailed = "StartFailed"
)

// FunctionStatus is what Windlass observes of a Function.
type FunctionStatus struct {
	// ObservedGeneration is the generation that the rest of the status is
	// about.
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
	// Conditions are the standard conditions, keyed by type.
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`
	// Instances counts the function's instances by state.
	Instances InstanceCounts `json:"instances,omitempty"`
	// Queued is how many calls wait for an instance.
	Queued int64 `json:"queued,omitempty"`
	// MeanExecutionTime is the mean of the last ten executions.
	MeanExecutionTime *metav1.Duration `json:"meanExecutionTime,omitempty"`
	// URL is where the function can be called.
	URL string `json:"url,omitempty"`
}

// InstanceCounts counts instances by state. Created = Busy + Idle.
type InstanceCounts struct {
	// Creating instances were ordered and cannot be called yet.
	Creating int32 `json:"creating"`
	// Created instances can be called.
	Created int32 `json:"created"`
	// Busy instances run at least one call.
	Busy int32 `json:"busy"`
	// Idle instances run none.
	Idle int32 `json:"idle"`
}
