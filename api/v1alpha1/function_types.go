package v1alpha1

import (
	corev1 "k8s.io/api/core/v1"
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
// Runtime.
//
// +kubebuilder:validation:MinLength=1
// +kubebuilder:validation:MaxLength=63
// +kubebuilder:validation:XValidation:rule="self.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?$')",message="must be the name of a Runtime, in lower-case letters, digits and hyphens; write for example python3"
type RuntimeName string

const (
	// RuntimePython3 runs a Python handler with the standard library only.
	RuntimePython3 RuntimeName = "python3"
	// RuntimeNodeJS runs a Node.js handler with built-in modules only.
	RuntimeNodeJS RuntimeName = "nodejs"
)

// Function is a piece of code that Windlass runs on demand: it has its own
// queue, and its instances pull from that queue.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:shortName=fn,categories=windlass;all
// +kubebuilder:subresource:status
// +kubebuilder:subresource:scale:specpath=.spec.scaling.min,statuspath=.status.instances.created,selectorpath=.status.selector
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`,description="Whether the function can be called"
// +kubebuilder:printcolumn:name="Instances",type=integer,JSONPath=`.status.instances.created`,description="Instances that can be called"
// +kubebuilder:printcolumn:name="Busy",type=integer,JSONPath=`.status.instances.busy`,description="Instances that run a call"
// +kubebuilder:printcolumn:name="Queued",type=integer,JSONPath=`.status.queued`,description="Calls that wait for an instance"
// +kubebuilder:printcolumn:name="Mean",type=string,JSONPath=`.status.meanExecutionTime`,description="Mean of the last executions"
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:printcolumn:name="Reason",type=string,priority=1,JSONPath=`.status.conditions[?(@.type=="Ready")].reason`,description="Why the function is ready or not"
// +kubebuilder:printcolumn:name="Runs",type=string,priority=1,JSONPath=`.spec['image','runtime']`,description="The image or the Runtime"
// +kubebuilder:printcolumn:name="URL",type=string,priority=1,JSONPath=`.status.url`
// +kubebuilder:validation:XValidation:rule="self.metadata.name.matches('^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$')",fieldPath=".metadata",message="name must be 1 to 63 lower-case letters, digits and hyphens, with a letter or digit at both ends; write for example my-function"
type Function struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitzero"`

	// +required
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
//
// The protocol of a Function cannot change: calls that wait, and calls that are
// run again, were accepted for callers of the old one, and would reach a
// program that cannot answer them.
//
// +kubebuilder:validation:XValidation:rule="has(self.image) || has(self.runtime) || has(self.command)",message="image: or runtime: missing; write for example image: example.com/team/function:1.0, or runtime: python3 with handler: main.handle and code: {inline: ...}"
// +kubebuilder:validation:XValidation:rule="!has(self.command) || has(self.image) || has(self.runtime)",fieldPath=".command",message="a command without an image runs in local mode only; add image:, which holds the program"
// +kubebuilder:validation:XValidation:rule="!has(self.runtime) || !has(self.image)",fieldPath=".image",reason=FieldValueForbidden,message="a runtime brings its own image; remove image or runtime"
// +kubebuilder:validation:XValidation:rule="!has(self.runtime) || !has(self.command)",fieldPath=".command",reason=FieldValueForbidden,message="a runtime brings its own program; remove command or runtime"
// +kubebuilder:validation:XValidation:rule="!has(self.runtime) || !has(self.args)",fieldPath=".args",reason=FieldValueForbidden,message="a runtime brings its own program; remove args or runtime"
// +kubebuilder:validation:XValidation:rule="!has(self.runtime) || has(self.handler)",fieldPath=".handler",reason=FieldValueRequired,message="a runtime needs module.function; write for example handler: main.handle"
// +kubebuilder:validation:XValidation:rule="!has(self.runtime) || !(self.runtime in ['nodejs', 'python3']) || !has(self.handler) || self.handler.matches('^[0-9A-Za-z_][0-9A-Za-z_-]*([./][0-9A-Za-z_][0-9A-Za-z_-]*)*[.][A-Za-z_$][0-9A-Za-z_$]*$')",fieldPath=".handler",message="must be module.function; write for example main.handle"
// +kubebuilder:validation:XValidation:rule="!has(self.runtime) || has(self.code)",fieldPath=".code",reason=FieldValueRequired,message="a runtime needs source code; put it into code.inline, or into a ConfigMap that code.configMap names"
// +kubebuilder:validation:XValidation:rule="has(self.runtime) || !has(self.handler) || (has(self.protocol) && self.protocol == 'LambdaRuntime')",fieldPath=".handler",reason=FieldValueForbidden,message="only a runtime has a handler; add runtime: python3 or runtime: nodejs, or protocol: LambdaRuntime for a runtime client of your own, or remove handler"
// +kubebuilder:validation:XValidation:rule="has(self.runtime) || !has(self.code) || has(self.code.path)",fieldPath=".code",reason=FieldValueForbidden,message="an image holds its own code; remove code"
// +kubebuilder:validation:XValidation:rule="(has(self.protocol) ? self.protocol : has(self.runtime) ? 'LambdaRuntime' : 'HTTP') == (has(oldSelf.protocol) ? oldSelf.protocol : has(oldSelf.runtime) ? 'LambdaRuntime' : 'HTTP')",fieldPath=".protocol",message="cannot change, because calls that wait were made for the old one; make a new function, or delete this one first"
type FunctionSpec struct {
	// Image is the container image of the function. It needs a cluster:
	// local mode runs Command or Runtime.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=1024
	// +kubebuilder:validation:XValidation:rule="self.matches('^[0-9A-Za-z][0-9A-Za-z._:/@-]*$') && !self.contains('://')",message="must be the reference of an image; write for example example.com/team/function:1.0"
	Image string `json:"image,omitempty"`
	// Command is the program and its arguments. In local mode it is what
	// runs; with Image it replaces the image's entrypoint.
	// +listType=atomic
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=64
	// +kubebuilder:validation:items:MaxLength=32768
	// +kubebuilder:validation:XValidation:rule="self.size() == 0 || self[0] != ''",message="the program is missing; write for example command: [\"./server\"]"
	Command []string `json:"command,omitempty"`
	// Args are arguments behind the command or, with Image and no Command,
	// behind the image's entrypoint.
	// +listType=atomic
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=256
	// +kubebuilder:validation:items:MaxLength=32768
	Args []string `json:"args,omitempty"`

	// Runtime is a language runtime: one that Windlass brings along or, in a
	// cluster, the name of any Runtime. It needs Handler and Code.
	Runtime RuntimeName `json:"runtime,omitempty"`
	// Handler is the function inside Code, as "module.function". With Command
	// and the protocol LambdaRuntime it is what the runtime client is told
	// in _HANDLER.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=512
	Handler string `json:"handler,omitempty"`
	// Code is the source that Runtime loads: Inline, ConfigMap or Path. With
	// Command, Code.Path is the working directory of the program.
	Code *Code `json:"code,omitempty"`

	// Protocol is HTTP or LambdaRuntime. The default is LambdaRuntime for
	// a Runtime and HTTP for everything else. It cannot change.
	Protocol Protocol `json:"protocol,omitempty"`
	// Port is where an image with the protocol HTTP listens, and what $PORT
	// says, 1 to 65535 except 9001 and 9090. The default is 8080. Local mode
	// chooses a free port.
	// +kubebuilder:default=8080
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=65535
	// +kubebuilder:validation:XValidation:rule="!(self in [9001, 9090])",message="the instance's agent uses the ports 9001 and 9090 itself; take another, for example 8080"
	Port int32 `json:"port,omitempty"`

	// Concurrency is how many calls one instance runs at a time, 1 to
	// 1000. The default is 1.
	// +kubebuilder:default=1
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=1000
	Concurrency int32 `json:"concurrency,omitempty"`
	// Timeout is the longest a call may run once an instance has claimed
	// it, 10ms to 24h. The default is 1m.
	// +kubebuilder:default="1m"
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:XValidation:rule="self.matches('^([0-9]+([.][0-9]+)?(ns|us|µs|μs|ms|s|m|h))+$') && duration(self) >= duration('10ms') && duration(self) <= duration('24h')",message="must be a duration of 10ms to 24h; write for example 60s"
	Timeout metav1.Duration `json:"timeout,omitzero"`
	// StartupTimeout is the longest that an instance may take from its
	// start until its function can be called, 100ms to 1h. In a cluster,
	// the time to pull the function's image is a part of it. The default
	// is 1m.
	// +kubebuilder:default="1m"
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:XValidation:rule="self.matches('^([0-9]+([.][0-9]+)?(ns|us|µs|μs|ms|s|m|h))+$') && duration(self) >= duration('100ms') && duration(self) <= duration('1h')",message="must be a duration of 100ms to 1h; write for example 1m"
	StartupTimeout metav1.Duration `json:"startupTimeout,omitzero"`

	// Resources are what an instance reserves and may use.
	// +kubebuilder:default={}
	Resources Resources `json:"resources,omitzero"`
	// Env are further environment variables of the function. Names that
	// Windlass sets itself are refused: PORT, _HANDLER, LAMBDA_TASK_ROOT,
	// AWS_LAMBDA_RUNTIME_API and all that begin with WINDLASS_.
	// +kubebuilder:validation:MaxItems=256
	// +listType=map
	// +listMapKey=name
	Env []EnvVar `json:"env,omitempty"`
	// EnvFrom takes further environment variables from Secrets and ConfigMaps
	// of the function's namespace. In local mode they are those that windlass
	// deploy --secret was given.
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=64
	EnvFrom []EnvFromSource `json:"envFrom,omitempty"`

	// NodeSelector restricts instances to nodes with these labels. It, and
	// the fields down to ServiceAccountName, need a cluster; local mode
	// ignores them.
	// +kubebuilder:validation:MaxProperties=64
	NodeSelector map[string]string `json:"nodeSelector,omitempty"`
	// Tolerations let instances run on tainted nodes.
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=64
	Tolerations []corev1.Toleration `json:"tolerations,omitempty"`
	// RuntimeClassName is the RuntimeClass of the pods, such as gvisor.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?([.][a-z0-9]([-a-z0-9]*[a-z0-9])?)*$')",message="must be the name of a RuntimeClass, in lower-case letters, digits, hyphens and dots; write for example gvisor"
	RuntimeClassName string `json:"runtimeClassName,omitempty"`
	// PriorityClassName is the PriorityClass of the pods.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?([.][a-z0-9]([-a-z0-9]*[a-z0-9])?)*$')",message="must be the name of a PriorityClass, in lower-case letters, digits, hyphens and dots; write for example batch"
	PriorityClassName string `json:"priorityClassName,omitempty"`
	// ImagePullSecrets are Secrets of the function's namespace.
	// +kubebuilder:validation:MaxItems=32
	// +listType=map
	// +listMapKey=name
	ImagePullSecrets []LocalReference `json:"imagePullSecrets,omitempty"`
	// ServiceAccountName is the account whose token the function's own
	// container gets. Without it, there is no token.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?([.][a-z0-9]([-a-z0-9]*[a-z0-9])?)*$')",message="must be the name of a ServiceAccount, in lower-case letters, digits, hyphens and dots; write for example my-function"
	ServiceAccountName string `json:"serviceAccountName,omitempty"`

	// Scaling bounds the number of instances and says when they leave.
	// +kubebuilder:default={}
	Scaling Scaling `json:"scaling,omitzero"`

	// Limits bound the calls of the function, of all callers together. There
	// are none by default.
	Limits Limits `json:"limits,omitzero"`

	// Idempotent says that running a call twice does no harm. A call of such a
	// function is run again, twice at most, when an instance is lost with it,
	// and a small one may start before its gateway knows.
	Idempotent bool `json:"idempotent,omitempty"`

	// CancelOnDisconnect ends a running call when its client hangs up: the
	// function's connection is closed. What it does then is unknown, so its
	// instance is replaced; that pays for calls that run for long. Otherwise
	// the call runs to its end, unheard.
	CancelOnDisconnect bool `json:"cancelOnDisconnect,omitempty"`

	// Decider is the provisioning algorithm. The default is what the schedulers
	// were told with --decider, which is horizon if they were told nothing.
	Decider DeciderName `json:"decider,omitempty"`
}

// Code is source code: exactly one of its fields.
//
// +kubebuilder:validation:XValidation:rule="!has(self.path)",fieldPath=".path",reason=FieldValueForbidden,message="needs local mode; put the code into an image, a ConfigMap or code.inline"
// +kubebuilder:validation:XValidation:rule="has(self.path) || has(self.inline) || has(self.configMap)",message="is empty; put the source into code.inline, or into a ConfigMap that code.configMap names"
// +kubebuilder:validation:XValidation:rule="!has(self.inline) || !has(self.configMap)",reason=FieldValueForbidden,message="inline and configMap exclude each other; remove code.inline or code.configMap"
type Code struct {
	// Inline is the source of one module. In a cluster it is at most 200000
	// bytes long.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=1048576
	// +kubebuilder:validation:XValidation:rule="size(bytes(self)) <= 200000",message="is longer than 200000 bytes; use a ConfigMap or an image"
	Inline string `json:"inline,omitempty"`
	// ConfigMap is the name of a ConfigMap of the function's namespace whose
	// keys are the files. It needs a cluster. Instances that are there keep
	// the code that they started with.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?([.][a-z0-9]([-a-z0-9]*[a-z0-9])?)*$')",message="must be the name of a ConfigMap, in lower-case letters, digits, hyphens and dots; write for example my-function-code"
	ConfigMap string `json:"configMap,omitempty"`
	// Path is a file or a folder. A relative path in a manifest starts at
	// the manifest's own folder. It needs local mode.
	// +kubebuilder:validation:MaxLength=4096
	Path string `json:"path,omitempty"`
}

// EnvFromSource names where to take environment variables from: exactly one of
// SecretRef and ConfigMapRef.
//
// +kubebuilder:validation:XValidation:rule="has(self.secretRef) != has(self.configMapRef)",message="needs exactly one of secretRef and configMapRef; write for example secretRef: {name: my-secret}"
type EnvFromSource struct {
	// Prefix goes before the name of each variable.
	// +kubebuilder:validation:MaxLength=128
	// +kubebuilder:validation:XValidation:rule="self.matches('^([A-Za-z_.-][0-9A-Za-z_.-]*)?$')",message="must be letters, digits, '_', '-' and '.', and not begin with a digit; write for example DB_"
	Prefix string `json:"prefix,omitempty"`
	// SecretRef names a Secret.
	SecretRef *LocalReference `json:"secretRef,omitempty"`
	// ConfigMapRef names a ConfigMap.
	ConfigMapRef *LocalReference `json:"configMapRef,omitempty"`
}

// LocalReference names an object of the function's own namespace.
type LocalReference struct {
	// Name of the object.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?([.][a-z0-9]([-a-z0-9]*[a-z0-9])?)*$')",message="must be the name of an object of this namespace, in lower-case letters, digits, hyphens and dots; write for example my-object"
	Name string `json:"name"`
}

// EnvVar is an environment variable.
type EnvVar struct {
	// Name of the variable.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=256
	// +kubebuilder:validation:XValidation:rule="self.matches('^[-._a-zA-Z][-._a-zA-Z0-9]*$') && !self.matches('^[.][.]') && self != '.'",message="must be letters, digits, '_', '-' and '.', and not begin with a digit or '..'; write for example APP_MODE"
	// +kubebuilder:validation:XValidation:rule="!(self in ['PORT', 'AWS_LAMBDA_RUNTIME_API', '_HANDLER', 'LAMBDA_TASK_ROOT']) && !self.startsWith('WINDLASS_')",reason=FieldValueForbidden,messageExpression="'Windlass sets ' + self + ' itself; take another name, for example APP_MODE'",message="Windlass sets this variable itself; take another name, for example APP_MODE"
	Name string `json:"name"`
	// Value of the variable, as it is: nothing is expanded.
	// +kubebuilder:validation:MaxLength=131072
	Value string `json:"value,omitempty"`
}

// Resources are the compute resources of one instance.
//
// +kubebuilder:validation:XValidation:rule="!has(self.limits) || !has(self.requests) || !has(self.limits.cpu) || !has(self.requests.cpu) || !string(self.limits.cpu).matches('^[0-9.]+[numkMGTPEi]{0,2}$') || !string(self.requests.cpu).matches('^[0-9.]+[numkMGTPEi]{0,2}$') || quantity(string(self.limits.cpu)).compareTo(quantity(string(self.requests.cpu))) >= 0",fieldPath=".limits.cpu",message="must be at least the request; raise it, or lower resources.requests.cpu"
// +kubebuilder:validation:XValidation:rule="!has(self.limits) || !has(self.requests) || !has(self.limits.memory) || !has(self.requests.memory) || !string(self.limits.memory).matches('^[0-9.]+[numkMGTPEi]{0,2}$') || !string(self.requests.memory).matches('^[0-9.]+[numkMGTPEi]{0,2}$') || quantity(string(self.limits.memory)).compareTo(quantity(string(self.requests.memory))) >= 0",fieldPath=".limits.memory",message="must be at least the request; raise it, or lower resources.requests.memory"
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
	// +kubebuilder:validation:XValidation:rule="string(self).matches('^[+]?[0-9]{1,18}([.][0-9]{0,9})?([KMGTPE]i|[numkMGTPE]|[eE][+-]?[0-9]{1,2})?$') && quantity(string(self)).compareTo(quantity('1m')) >= 0",message="must be a quantity of at least 1m; write for example 250m, a quarter of a core"
	CPU *resource.Quantity `json:"cpu,omitempty"`
	// Memory in bytes, at least 1Mi; "128Mi" is 128 times 2^20.
	// +kubebuilder:validation:XValidation:rule="string(self).matches('^[+]?[0-9]{1,18}([.][0-9]{0,9})?([KMGTPE]i|[numkMGTPE]|[eE][+-]?[0-9]{1,2})?$') && quantity(string(self)).compareTo(quantity('1Mi')) >= 0",message="must be a quantity of at least 1Mi; write for example 128Mi, which are 128 times 2^20 bytes"
	Memory *resource.Quantity `json:"memory,omitempty"`
}

// FunctionStatus is what Windlass observes of a Function.
type FunctionStatus struct {
	// ObservedGeneration is the generation that the rest of the status is
	// about.
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
	// Conditions are the standard conditions, keyed by type.
	// +listType=map
	// +listMapKey=type
	// +kubebuilder:validation:MaxItems=8
	Conditions []metav1.Condition `json:"conditions,omitempty"`
	// Instances counts the function's instances by state.
	Instances InstanceCounts `json:"instances"`
	// Queued is how many calls wait for an instance.
	Queued int64 `json:"queued"`
	// MeanExecutionTime is the mean of the last ten executions.
	MeanExecutionTime *metav1.Duration `json:"meanExecutionTime,omitempty"`
	// MeanStartTime is the mean time that the last ten instances took from
	// their order until they could be called.
	MeanStartTime *metav1.Duration `json:"meanStartTime,omitempty"`
	// URL is where the function can be called.
	URL string `json:"url,omitempty"`
	// Selector selects the function's pods, for the scale subresource.
	Selector string `json:"selector,omitempty"`
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
