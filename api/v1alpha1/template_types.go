package v1alpha1

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// FunctionTemplate is what one instance of a function is. A change in it makes a new
// revision, whose instances replace those of the old one; a change outside of it
// replaces none. Exactly one of image, command without image, or runtimeRef says what
// runs. A field that is zero counts as left out. In a manifest, the API server refuses
// numbers and durations that are written as zero.
//
// The protocol of a Function cannot change: calls that wait, and calls that are
// run again, were accepted for callers of the old one, and would reach a
// program that cannot answer them.
//
// +kubebuilder:validation:XValidation:rule="has(self.image) || has(self.runtimeRef) || has(self.command)",message="image: or runtimeRef: missing; write for example image: example.com/team/function:1.0, or runtimeRef: {name: python3.13} with handler: main.handle and code: {inline: ...}"
// +kubebuilder:validation:XValidation:rule="!has(self.command) || has(self.image) || has(self.runtimeRef)",fieldPath=".command",message="a command without an image runs in local mode only; add image:, which holds the program"
// +kubebuilder:validation:XValidation:rule="!has(self.runtimeRef) || !has(self.image)",fieldPath=".image",reason=FieldValueForbidden,message="a runtime brings its own image; remove image or runtimeRef"
// +kubebuilder:validation:XValidation:rule="!has(self.runtimeRef) || !has(self.command)",fieldPath=".command",reason=FieldValueForbidden,message="a runtime brings its own program; remove command or runtimeRef"
// +kubebuilder:validation:XValidation:rule="!has(self.runtimeRef) || !has(self.args)",fieldPath=".args",reason=FieldValueForbidden,message="a runtime brings its own program; remove args or runtimeRef"
// +kubebuilder:validation:XValidation:rule="!has(self.runtimeRef) || has(self.handler)",fieldPath=".handler",reason=FieldValueRequired,message="a runtime needs module.function; write for example handler: main.handle"
// +kubebuilder:validation:XValidation:rule="!has(self.runtimeRef) || !(self.runtimeRef.name in ['nodejs22.x', 'python3.13']) || !has(self.handler) || self.handler.matches('^[0-9A-Za-z_][0-9A-Za-z_-]*([./][0-9A-Za-z_][0-9A-Za-z_-]*)*[.][A-Za-z_$][0-9A-Za-z_$]*$')",fieldPath=".handler",message="must be module.function; write for example main.handle"
// +kubebuilder:validation:XValidation:rule="!has(self.runtimeRef) || has(self.code)",fieldPath=".code",reason=FieldValueRequired,message="a runtime needs source code; put it into code.inline, or into a ConfigMap that code.configMapRef names"
// +kubebuilder:validation:XValidation:rule="has(self.runtimeRef) || !has(self.handler) || (has(self.protocol) && self.protocol == 'LambdaRuntime')",fieldPath=".handler",reason=FieldValueForbidden,message="only a runtime has a handler; add runtimeRef: {name: python3.13} or runtimeRef: {name: nodejs22.x}, or protocol: LambdaRuntime for a runtime client of your own, or remove handler"
// +kubebuilder:validation:XValidation:rule="has(self.runtimeRef) || !has(self.code) || has(self.code.path)",fieldPath=".code",reason=FieldValueForbidden,message="an image holds its own code; remove code"
// +kubebuilder:validation:XValidation:rule="(!has(self.protocol) && has(self.runtimeRef)) || (!has(oldSelf.protocol) && has(oldSelf.runtimeRef)) || (has(self.protocol) ? self.protocol : 'HTTP') == (has(oldSelf.protocol) ? oldSelf.protocol : 'HTTP')",fieldPath=".protocol",message="cannot change, because calls that wait were made for the old one; make a new function, or delete this one first"
type FunctionTemplate struct {
	// metadata has labels and annotations for the pods of the instances.
	// +optional
	Metadata TemplateMetadata `json:"metadata,omitzero"`

	// image is the container image of the function, such as
	// example.com/team/function:1.0. It needs a cluster: local mode runs command
	// or runtimeRef.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=1024
	// +kubebuilder:validation:XValidation:rule="self.matches('^[0-9A-Za-z][0-9A-Za-z._:/@-]*$') && !self.contains('://')",message="must be the reference of an image; write for example example.com/team/function:1.0"
	Image string `json:"image,omitempty"`
	// command is the program and its arguments. With image, it replaces the
	// image's entrypoint; in local mode it is what runs.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=64
	// +kubebuilder:validation:items:MinLength=0
	// +kubebuilder:validation:items:MaxLength=32768
	// +kubebuilder:validation:XValidation:rule="self.size() == 0 || self[0] != ''",message="the program is missing; write for example command: [\"./server\"]"
	Command []string `json:"command,omitempty"`
	// args are further arguments of command or, with an image and no command, of
	// the image's entrypoint.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=256
	// +kubebuilder:validation:items:MinLength=0
	// +kubebuilder:validation:items:MaxLength=32768
	Args []string `json:"args,omitempty"`

	// runtimeRef is the language runtime that runs handler and code, for a
	// function that is neither an image nor a program.
	// +optional
	RuntimeRef RuntimeReference `json:"runtimeRef,omitzero"`
	// handler is the function in the code that runtimeRef calls, as
	// "module.function". With command and the protocol LambdaRuntime, it is the
	// value of the environment variable _HANDLER.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=512
	Handler string `json:"handler,omitempty"`
	// code is the source code that runtimeRef loads: exactly one of inline,
	// configMapRef and path. With command, code.path is the working directory of
	// the program.
	// +optional
	Code *Code `json:"code,omitempty"`

	// protocol is how calls reach the function. HTTP: the function is a server
	// that listens on $PORT. LambdaRuntime: the function is a client of the AWS
	// Lambda Runtime API. The default is the protocol of runtimeRef, which mostly
	// is LambdaRuntime, and HTTP without a runtimeRef. It cannot change. More
	// values may come.
	// +optional
	Protocol Protocol `json:"protocol,omitempty"`
	// port is where an image with the protocol HTTP listens, and the value of
	// $PORT: 1 to 65535 except 9001 and 9090. The default is 8080. In local mode
	// Windlass chooses a free port.
	// +optional
	// +kubebuilder:default=8080
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=65535
	// +kubebuilder:validation:XValidation:rule="!(self in [9001, 9090])",message="the instance's agent uses the ports 9001 and 9090 itself; take another, for example 8080"
	Port int32 `json:"port,omitempty"`

	// concurrency is how many calls one instance runs at the same time, 1 to 1000.
	// The default is 1.
	// +optional
	// +kubebuilder:default=1
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=1000
	Concurrency int32 `json:"concurrency,omitempty"`
	// timeout is how long a call may run, from when an instance has taken it, 10ms
	// to 24h, such as 90s. The default is 1m.
	// +optional
	// +kubebuilder:default="1m"
	// +kubebuilder:validation:XValidation:rule="self.matches('^([0-9]{1,5}(h|m|s|ms)){1,4}$') && duration(self) >= duration('10ms') && duration(self) <= duration('24h')",message="must be a duration of 10ms to 24h; write for example 60s"
	Timeout Duration `json:"timeout,omitzero"`
	// startupTimeout is how long an instance may take from its start until its
	// function can be called, 100ms to 1h. In a cluster this includes the pull of
	// the image. The default is 1m.
	// +optional
	// +kubebuilder:default="1m"
	// +kubebuilder:validation:XValidation:rule="self.matches('^([0-9]{1,5}(h|m|s|ms)){1,4}$') && duration(self) >= duration('100ms') && duration(self) <= duration('1h')",message="must be a duration of 100ms to 1h; write for example 1m"
	StartupTimeout Duration `json:"startupTimeout,omitzero"`

	// resources are what each instance reserves on its node, and what it may use
	// at most.
	// +optional
	// +kubebuilder:default={}
	// +kubebuilder:validation:XValidation:rule="!has(self.requests) || self.requests.all(k, k in ['cpu', 'memory', 'ephemeral-storage'] || k.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?([.][a-z0-9]([-a-z0-9]*[a-z0-9])?)*/([A-Za-z0-9][-A-Za-z0-9_.]{0,61})?[A-Za-z0-9]$') && !k.contains('kubernetes.io/') && !k.startsWith('requests.') && size(k) <= 128)",fieldPath=".requests",message="only cpu, memory, ephemeral-storage, and extended resources of a domain, such as nvidia.com/gpu, are known; correct the name"
	// +kubebuilder:validation:XValidation:rule="!has(self.requests) || self.requests.all(k, k in ['cpu', 'memory', 'ephemeral-storage'] || !string(self.requests[k]).matches('^0|\\\\D'))",fieldPath=".requests",message="an extended resource is a whole number of 1 or more; write for example nvidia.com/gpu: 1"
	// +kubebuilder:validation:XValidation:rule="!has(self.limits) || self.limits.all(k, k in ['cpu', 'memory', 'ephemeral-storage'] || k.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?([.][a-z0-9]([-a-z0-9]*[a-z0-9])?)*/([A-Za-z0-9][-A-Za-z0-9_.]{0,61})?[A-Za-z0-9]$') && !k.contains('kubernetes.io/') && !k.startsWith('requests.') && size(k) <= 128)",fieldPath=".limits",message="only cpu, memory, ephemeral-storage, and extended resources of a domain, such as nvidia.com/gpu, are known; correct the name"
	// +kubebuilder:validation:XValidation:rule="!has(self.limits) || self.limits.all(k, k in ['cpu', 'memory', 'ephemeral-storage'] || !string(self.limits[k]).matches('^0|\\\\D'))",fieldPath=".limits",message="an extended resource is a whole number of 1 or more; write for example nvidia.com/gpu: 1"
	// +kubebuilder:validation:XValidation:rule="!has(self.requests) || !('cpu' in self.requests) || size(string(self.requests['cpu'])) <= 40 && !string(self.requests['cpu']).matches('[eE][+-]?[0-9]{3}') && isQuantity(string(self.requests['cpu'])) && quantity(string(self.requests['cpu'])).compareTo(quantity('1m')) >= 0",fieldPath=".requests['cpu']",message="must be a quantity of at least 1m; write for example 250m, a quarter of a core"
	// +kubebuilder:validation:XValidation:rule="!has(self.requests) || !('memory' in self.requests) || size(string(self.requests['memory'])) <= 40 && !string(self.requests['memory']).matches('[eE][+-]?[0-9]{3}') && isQuantity(string(self.requests['memory'])) && quantity(string(self.requests['memory'])).compareTo(quantity('1Mi')) >= 0",fieldPath=".requests['memory']",message="must be a quantity of at least 1Mi; write for example 128Mi, which are 128 times 2^20 bytes"
	// +kubebuilder:validation:XValidation:rule="!has(self.requests) || !('ephemeral-storage' in self.requests) || size(string(self.requests['ephemeral-storage'])) <= 40 && !string(self.requests['ephemeral-storage']).matches('[eE][+-]?[0-9]{3}') && isQuantity(string(self.requests['ephemeral-storage'])) && quantity(string(self.requests['ephemeral-storage'])).compareTo(quantity('1Mi')) >= 0",fieldPath=".requests['ephemeral-storage']",message="must be a quantity of at least 1Mi; write for example 2Gi, which are 2 times 2^30 bytes"
	// +kubebuilder:validation:XValidation:rule="!has(self.limits) || !('cpu' in self.limits) || size(string(self.limits['cpu'])) <= 40 && !string(self.limits['cpu']).matches('[eE][+-]?[0-9]{3}') && isQuantity(string(self.limits['cpu'])) && quantity(string(self.limits['cpu'])).compareTo(quantity('1m')) >= 0",fieldPath=".limits['cpu']",message="must be a quantity of at least 1m; write for example 250m, a quarter of a core"
	// +kubebuilder:validation:XValidation:rule="!has(self.limits) || !('memory' in self.limits) || size(string(self.limits['memory'])) <= 40 && !string(self.limits['memory']).matches('[eE][+-]?[0-9]{3}') && isQuantity(string(self.limits['memory'])) && quantity(string(self.limits['memory'])).compareTo(quantity('1Mi')) >= 0",fieldPath=".limits['memory']",message="must be a quantity of at least 1Mi; write for example 128Mi, which are 128 times 2^20 bytes"
	// +kubebuilder:validation:XValidation:rule="!has(self.limits) || !('ephemeral-storage' in self.limits) || size(string(self.limits['ephemeral-storage'])) <= 40 && !string(self.limits['ephemeral-storage']).matches('[eE][+-]?[0-9]{3}') && isQuantity(string(self.limits['ephemeral-storage'])) && quantity(string(self.limits['ephemeral-storage'])).compareTo(quantity('1Mi')) >= 0",fieldPath=".limits['ephemeral-storage']",message="must be a quantity of at least 1Mi; write for example 2Gi, which are 2 times 2^30 bytes"
	// +kubebuilder:validation:XValidation:rule="!has(self.limits) || !has(self.requests) || !('cpu' in self.limits) || !('cpu' in self.requests) || !(size(string(self.limits['cpu'])) <= 40 && !string(self.limits['cpu']).matches('[eE][+-]?[0-9]{3}') && isQuantity(string(self.limits['cpu'])) && size(string(self.requests['cpu'])) <= 40 && !string(self.requests['cpu']).matches('[eE][+-]?[0-9]{3}') && isQuantity(string(self.requests['cpu']))) || quantity(string(self.limits['cpu'])).compareTo(quantity(string(self.requests['cpu']))) >= 0",fieldPath=".limits['cpu']",message="must be at least the request; raise it, or lower resources.requests.cpu"
	// +kubebuilder:validation:XValidation:rule="!has(self.limits) || !has(self.requests) || !('memory' in self.limits) || !('memory' in self.requests) || !(size(string(self.limits['memory'])) <= 40 && !string(self.limits['memory']).matches('[eE][+-]?[0-9]{3}') && isQuantity(string(self.limits['memory'])) && size(string(self.requests['memory'])) <= 40 && !string(self.requests['memory']).matches('[eE][+-]?[0-9]{3}') && isQuantity(string(self.requests['memory']))) || quantity(string(self.limits['memory'])).compareTo(quantity(string(self.requests['memory']))) >= 0",fieldPath=".limits['memory']",message="must be at least the request; raise it, or lower resources.requests.memory"
	// +kubebuilder:validation:XValidation:rule="!has(self.limits) || !has(self.requests) || !('ephemeral-storage' in self.limits) || !('ephemeral-storage' in self.requests) || !(size(string(self.limits['ephemeral-storage'])) <= 40 && !string(self.limits['ephemeral-storage']).matches('[eE][+-]?[0-9]{3}') && isQuantity(string(self.limits['ephemeral-storage'])) && size(string(self.requests['ephemeral-storage'])) <= 40 && !string(self.requests['ephemeral-storage']).matches('[eE][+-]?[0-9]{3}') && isQuantity(string(self.requests['ephemeral-storage']))) || quantity(string(self.limits['ephemeral-storage'])).compareTo(quantity(string(self.requests['ephemeral-storage']))) >= 0",fieldPath=".limits['ephemeral-storage']",message="must be at least the request; raise it, or lower resources.requests.ephemeral-storage"
	// +kubebuilder:validation:XValidation:rule="!has(self.requests) || self.requests.all(k, !k.contains('/') || has(self.limits) && k in self.limits && string(self.limits[k]) == string(self.requests[k]))",fieldPath=".requests",message="an extended resource is requested as much as it is limited to; write it in resources.limits alone"
	Resources Resources `json:"resources,omitzero"`
	// scheduling says how the instances share the cores of their node with those
	// of other functions.
	// +optional
	// +kubebuilder:default={}
	Scheduling Scheduling `json:"scheduling,omitzero"`
	// env are environment variables of the function. Names that Windlass sets
	// itself are refused: PORT, _HANDLER, LAMBDA_TASK_ROOT,
	// AWS_LAMBDA_RUNTIME_API, and all that begin with WINDLASS_.
	// +optional
	// +kubebuilder:validation:MaxItems=256
	// +listType=map
	// +listMapKey=name
	Env []EnvVar `json:"env,omitempty"`
	// envFrom are Secrets and ConfigMaps of the function's namespace whose keys
	// become environment variables. In local mode, windlass deploy --secret
	// supplies them. Variables of env win.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=64
	EnvFrom []EnvFromSource `json:"envFrom,omitempty"`
	// mounts are files and folders that the function finds at paths of its own.
	// They need a cluster. No path may be within another one, or within a folder
	// that Windlass mounts itself.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=10
	// +kubebuilder:validation:XValidation:rule="self.all(a, self.all(b, a.name == b.name || !(b.mountPath + '/').startsWith(a.mountPath + '/')))",message="a mountPath is that of another one, or below it; take paths apart, for example /etc/app and /models"
	Mounts []Mount `json:"mounts,omitempty"`

	// imagePullSecrets are the Secrets of the function's namespace by which its
	// image is pulled. Local mode ignores them.
	// +optional
	// +kubebuilder:validation:MaxItems=32
	// +listType=map
	// +listMapKey=name
	ImagePullSecrets []LocalReference `json:"imagePullSecrets,omitempty"`
	// serviceAccountName is the ServiceAccount whose token the function gets, at
	// the usual path. The default is no token. Local mode ignores it.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?([.][a-z0-9]([-a-z0-9]*[a-z0-9])?)*$')",message="must be the name of a ServiceAccount, in lower-case letters, digits, hyphens and dots; write for example my-function"
	ServiceAccountName string `json:"serviceAccountName,omitempty"`
	// placement says on which nodes the pods of the instances run, and by which
	// classes. Local mode ignores it.
	// +optional
	Placement Placement `json:"placement,omitzero"`
}

// TemplateMetadata is what the pods of a function carry besides Windlass' own labels and
// annotations. Keys of windlass.dev, kubernetes.io and k8s.io, and of domains below them,
// are not for functions.
type TemplateMetadata struct {
	// labels are added to the pods, such as a cost center, or a label that a
	// policy selects. Keys of windlass.dev, kubernetes.io and k8s.io are refused.
	// At most 32.
	// +optional
	// +kubebuilder:validation:MaxProperties=32
	// +kubebuilder:validation:XValidation:rule="self.all(k, size(k) <= 317 && size(self[k]) <= 63)",message="a key or a value is too long for a label; write for example cost-center: \"4711\""
	// +kubebuilder:validation:XValidation:rule="!self.exists(k, k.matches('^([^/]*[.])?(windlass[.]dev|kubernetes[.]io|k8s[.]io)/'))",reason=FieldValueForbidden,message="keys of windlass.dev, kubernetes.io and k8s.io, and below, are not for functions; take one of your own, for example cost-center"
	Labels map[string]string `json:"labels,omitempty"`
	// annotations are added to the pods. Keys of windlass.dev, kubernetes.io and
	// k8s.io are refused. At most 32.
	// +optional
	// +kubebuilder:validation:MaxProperties=32
	// +kubebuilder:validation:XValidation:rule="self.all(k, size(k) <= 317 && size(self[k]) <= 1024)",message="a key is too long for an annotation, or a value is longer than 1024 characters; write for example example.com/owner: payments"
	// +kubebuilder:validation:XValidation:rule="!self.exists(k, k.matches('^([^/]*[.])?(windlass[.]dev|kubernetes[.]io|k8s[.]io)/'))",reason=FieldValueForbidden,message="keys of windlass.dev, kubernetes.io and k8s.io, and below, are not for functions; take one of your own, for example example.com/owner"
	Annotations map[string]string `json:"annotations,omitempty"`
}

// RuntimeReference names a language runtime.
type RuntimeReference struct {
	// kind is the kind of runtime. ClusterRuntime is one that all namespaces
	// share. The default is ClusterRuntime. More values may come.
	// +optional
	// +kubebuilder:default=ClusterRuntime
	// +kubebuilder:validation:Enum=ClusterRuntime
	Kind string `json:"kind,omitempty"`
	// name is the name of the runtime, such as python3.13. kubectl get
	// clusterruntimes lists them.
	// +required
	Name RuntimeName `json:"name,omitempty"`
}

// Placement says where the pods of a function may run. Its fields have the names and
// meanings that those of a pod have.
type Placement struct {
	// nodeSelector has the labels that nodes must have to run instances.
	// +optional
	// +kubebuilder:validation:MaxProperties=64
	NodeSelector map[string]string `json:"nodeSelector,omitempty"`
	// tolerations let instances run on nodes with taints.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=64
	// +kubebuilder:validation:items:XValidation:rule="!has(self.operator) || self.operator in ['', 'Exists', 'Equal']",fieldPath=".operator",message="must be Exists or Equal; write for example {key: spot, operator: Exists}"
	// +kubebuilder:validation:items:XValidation:rule="(has(self.key) && self.key != '') || (has(self.operator) && !(self.operator in ['', 'Equal']))",fieldPath=".key",reason=FieldValueRequired,message="only the operator Exists goes without a key; write for example {key: spot, operator: Exists}"
	// +kubebuilder:validation:items:XValidation:rule="!has(self.value) || self.value == '' || !has(self.operator) || self.operator != 'Exists'",fieldPath=".value",reason=FieldValueForbidden,message="the operator Exists takes any value; remove value, or write operator: Equal"
	// +kubebuilder:validation:items:XValidation:rule="!has(self.effect) || self.effect in ['', 'NoSchedule', 'PreferNoSchedule', 'NoExecute']",fieldPath=".effect",message="must be NoSchedule, PreferNoSchedule or NoExecute; without effect it is for all three"
	// +kubebuilder:validation:items:XValidation:rule="!has(self.tolerationSeconds) || (has(self.effect) && !(self.effect in ['', 'NoSchedule', 'PreferNoSchedule']))",fieldPath=".tolerationSeconds",reason=FieldValueForbidden,message="only the effect NoExecute has a time; add effect: NoExecute, or remove tolerationSeconds"
	Tolerations []corev1.Toleration `json:"tolerations,omitempty"`
	// runtimeClassName is the RuntimeClass of the pods, such as gvisor.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?([.][a-z0-9]([-a-z0-9]*[a-z0-9])?)*$')",message="must be the name of a RuntimeClass, in lower-case letters, digits, hyphens and dots; write for example gvisor"
	RuntimeClassName string `json:"runtimeClassName,omitempty"`
	// priorityClassName is the PriorityClass of the pods.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?([.][a-z0-9]([-a-z0-9]*[a-z0-9])?)*$')",message="must be the name of a PriorityClass, in lower-case letters, digits, hyphens and dots; write for example batch"
	PriorityClassName string `json:"priorityClassName,omitempty"`
}

// Code is source code: exactly one of its fields.
//
// +kubebuilder:validation:XValidation:rule="!has(self.path)",fieldPath=".path",reason=FieldValueForbidden,message="needs local mode; put the code into an image, a ConfigMap or code.inline"
// +kubebuilder:validation:XValidation:rule="has(self.path) || has(self.inline) || has(self.configMapRef)",message="is empty; put the source into code.inline, or into a ConfigMap that code.configMapRef names"
// +kubebuilder:validation:XValidation:rule="!has(self.inline) || !has(self.configMapRef)",reason=FieldValueForbidden,message="inline and configMapRef exclude each other; remove code.inline or code.configMapRef"
type Code struct {
	// inline is the source code of one module, at most 1 MiB and in a cluster at
	// most 200000 bytes.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=1048576
	// +kubebuilder:validation:XValidation:rule="size(bytes(self)) <= 200000",message="is longer than 200000 bytes; use a ConfigMap or an image"
	Inline string `json:"inline,omitempty"`
	// configMapRef is a ConfigMap of the function's namespace; its keys are the
	// names of the files. It needs a cluster. Running instances keep the code that
	// they started with.
	// +optional
	ConfigMapRef LocalReference `json:"configMapRef,omitzero"`
	// path is a file or folder on the machine of a local Windlass. A relative path
	// in a manifest starts at the manifest's folder. In a cluster it is refused.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=4096
	Path string `json:"path,omitempty"`
}

// EnvFromSource takes environment variables from the keys of an object:
// exactly one of secretRef and configMapRef.
//
// +kubebuilder:validation:XValidation:rule="has(self.secretRef) != has(self.configMapRef)",message="needs exactly one of secretRef and configMapRef; write for example secretRef: {name: my-secret}"
type EnvFromSource struct {
	// prefix is put before the name of each variable.
	// +optional
	// +kubebuilder:validation:MinLength=0
	// +kubebuilder:validation:MaxLength=128
	// +kubebuilder:validation:XValidation:rule="self.matches('^([A-Za-z_.-][0-9A-Za-z_.-]*)?$')",message="must be letters, digits, '_', '-' and '.', and not begin with a digit; write for example DB_"
	Prefix string `json:"prefix,omitempty"`
	// secretRef is a Secret of the function's namespace.
	// +optional
	SecretRef *EnvFromReference `json:"secretRef,omitempty"`
	// configMapRef is a ConfigMap of the function's namespace.
	// +optional
	ConfigMapRef *EnvFromReference `json:"configMapRef,omitempty"`
}

// EnvFromReference names an object of the function's own namespace that has variables.
type EnvFromReference struct {
	// name is the name of the object.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?([.][a-z0-9]([-a-z0-9]*[a-z0-9])?)*$')",message="must be the name of an object of this namespace, in lower-case letters, digits, hyphens and dots; write for example my-object"
	Name string `json:"name,omitempty"`
	// optional lets instances start if the object is missing. The default is
	// false.
	// +optional
	Optional bool `json:"optional,omitempty"`
}

// Mount is a volume and where the function finds it. Exactly one of secret,
// configMap, persistentVolumeClaim and emptyDir says what the volume holds.
//
// +kubebuilder:validation:XValidation:rule="(has(self.secret) ? 1 : 0) + (has(self.configMap) ? 1 : 0) + (has(self.persistentVolumeClaim) ? 1 : 0) + (has(self.emptyDir) ? 1 : 0) == 1",message="needs exactly one of secret, configMap, persistentVolumeClaim and emptyDir; write for example configMap: {name: my-settings}"
type Mount struct {
	// name is the name of the mount, which no other mount of the function has: at
	// most 50 lower-case letters, digits and hyphens.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=50
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?$')",message="must be at most 50 lower-case letters, digits and hyphens, with a letter or digit at both ends; write for example models"
	Name string `json:"name,omitempty"`
	// mountPath is the absolute path of the folder where the function finds the
	// volume or, with subPath, of the folder or file.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=256
	// +kubebuilder:validation:XValidation:rule="self.matches('^(/[^/:]+)+$') && !self.matches('/[.][.]?(/|$)')",message="must be an absolute path without ':', '.', '..' and a slash at its end; write for example /etc/app"
	// +kubebuilder:validation:XValidation:rule="!['/tmp', '/var/task', '/var/run/secrets/kubernetes.io', '/var/run/secrets/windlass.dev', '/run/secrets/kubernetes.io', '/run/secrets/windlass.dev', '/dev', '/proc', '/sys'].exists(p, (p + '/').startsWith(self + '/') || (self + '/').startsWith(p + '/'))",reason=FieldValueForbidden,message="is a path of Windlass' or the system's own, or contains one or is below it: /tmp, /var/task, /var/run/secrets, /dev, /proc, /sys; take another one, for example /etc/app"
	MountPath string `json:"mountPath,omitempty"`
	// subPath is a path within the volume; only what is there is mounted. A file
	// of a Secret or ConfigMap that is mounted by a subPath does not change when
	// the object does.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=256
	// +kubebuilder:validation:XValidation:rule="!self.startsWith('/') && !self.matches('(^|/)[.][.](/|$)')",message="must be a path within the volume, without '..' and a slash at its beginning; write for example app/settings.json"
	SubPath string `json:"subPath,omitempty"`
	// readOnly makes the mount read-only, as those of Secrets and ConfigMaps
	// always are. The default is false.
	// +optional
	ReadOnly bool `json:"readOnly,omitempty"`

	// secret is a Secret of the function's namespace. The folder has a file for
	// each of its keys.
	// +optional
	Secret *SecretMount `json:"secret,omitempty"`
	// configMap is a ConfigMap of the function's namespace. The folder has a file
	// for each of its keys.
	// +optional
	ConfigMap *ConfigMapMount `json:"configMap,omitempty"`
	// persistentVolumeClaim is a claim of the function's namespace. It must be
	// bound already, to a volume that every node can mount on which instances may
	// run.
	// +optional
	PersistentVolumeClaim *ClaimMount `json:"persistentVolumeClaim,omitempty"`
	// emptyDir is a folder of each instance: empty when the instance starts,
	// deleted when it ends.
	// +optional
	EmptyDir *EmptyDirMount `json:"emptyDir,omitempty"`
}

// SecretMount names a Secret.
type SecretMount struct {
	// secretName is the name of the Secret.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?([.][a-z0-9]([-a-z0-9]*[a-z0-9])?)*$')",message="must be the name of an object of this namespace, in lower-case letters, digits, hyphens and dots; write for example my-object"
	SecretName string `json:"secretName,omitempty"`
	// optional lets instances start if the Secret is missing, with an empty
	// folder. The default is false.
	// +optional
	Optional bool `json:"optional,omitempty"`
}

// ConfigMapMount names a ConfigMap.
type ConfigMapMount struct {
	// name is the name of the ConfigMap.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?([.][a-z0-9]([-a-z0-9]*[a-z0-9])?)*$')",message="must be the name of an object of this namespace, in lower-case letters, digits, hyphens and dots; write for example my-object"
	Name string `json:"name,omitempty"`
	// optional lets instances start if the ConfigMap is missing, with an empty
	// folder. The default is false.
	// +optional
	Optional bool `json:"optional,omitempty"`
}

// ClaimMount names a PersistentVolumeClaim.
type ClaimMount struct {
	// claimName is the name of the PersistentVolumeClaim.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?([.][a-z0-9]([-a-z0-9]*[a-z0-9])?)*$')",message="must be the name of an object of this namespace, in lower-case letters, digits, hyphens and dots; write for example my-object"
	ClaimName string `json:"claimName,omitempty"`
}

// EmptyDirMount says where an empty folder is, and how much it may hold.
type EmptyDirMount struct {
	// medium is where the folder is. Memory: in memory, where it counts toward the
	// function's memory limit. Without it: on the node's disk, where it counts as
	// ephemeral-storage.
	// +optional
	// +kubebuilder:validation:Enum=Memory
	Medium corev1.StorageMedium `json:"medium,omitempty"`
	// sizeLimit is how many bytes the folder may hold, such as 512Mi. An instance
	// that exceeds it is evicted. The default, and 0, is no limit but those of
	// resources.
	// +optional
	// +kubebuilder:validation:XValidation:rule="type(self) == int ? self >= 0 : size(self) <= 20 && !self.matches('[-eE]')",message="must be a quantity of 0 or more without an exponent; write for example 1Gi, which are 2^30 bytes"
	SizeLimit *resource.Quantity `json:"sizeLimit,omitempty"`
}

// LocalReference names an object of the function's own namespace.
type LocalReference struct {
	// name is the name of the object.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?([.][a-z0-9]([-a-z0-9]*[a-z0-9])?)*$')",message="must be the name of an object of this namespace, in lower-case letters, digits, hyphens and dots; write for example my-object"
	Name string `json:"name,omitempty"`
}

// EnvVar is an environment variable.
//
// +kubebuilder:validation:XValidation:rule="!has(self.valueFrom) || !has(self.value) || size(self.value) == 0",fieldPath=".valueFrom",reason=FieldValueForbidden,message="value and valueFrom exclude each other; remove one of the two"
type EnvVar struct {
	// name is the name of the variable.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=256
	// +kubebuilder:validation:XValidation:rule="self.matches('^[-._a-zA-Z][-._a-zA-Z0-9]*$') && !self.matches('^[.][.]') && self != '.'",message="must be letters, digits, '_', '-' and '.', and not begin with a digit or '..'; write for example APP_MODE"
	// +kubebuilder:validation:XValidation:rule="!(self in ['PORT', 'AWS_LAMBDA_RUNTIME_API', '_HANDLER', 'LAMBDA_TASK_ROOT']) && !self.startsWith('WINDLASS_')",reason=FieldValueForbidden,messageExpression="'Windlass sets ' + self + ' itself; take another name, for example APP_MODE'",message="Windlass sets this variable itself; take another name, for example APP_MODE"
	Name string `json:"name,omitempty"`
	// value is the value of the variable. Windlass takes it literally: it does not
	// expand $(NAME).
	// +optional
	// +kubebuilder:validation:MinLength=0
	// +kubebuilder:validation:MaxLength=131072
	Value string `json:"value,omitempty"`
	// valueFrom is where the value is read when an instance starts, instead of
	// value: exactly one of secretKeyRef, configMapKeyRef and fieldRef.
	// +optional
	ValueFrom *EnvVarSource `json:"valueFrom,omitempty"`
}

// EnvVarSource says where the value of a variable is: exactly one of its fields. Values
// are read when an instance starts.
//
// +kubebuilder:validation:XValidation:rule="(has(self.secretKeyRef) ? 1 : 0) + (has(self.configMapKeyRef) ? 1 : 0) + (has(self.fieldRef) ? 1 : 0) == 1",message="needs exactly one of secretKeyRef, configMapKeyRef and fieldRef; write for example secretKeyRef: {name: my-secret, key: password}"
type EnvVarSource struct {
	// secretKeyRef is a key of a Secret of the function's namespace.
	// +optional
	SecretKeyRef *KeyReference `json:"secretKeyRef,omitempty"`
	// configMapKeyRef is a key of a ConfigMap of the function's namespace.
	// +optional
	ConfigMapKeyRef *KeyReference `json:"configMapKeyRef,omitempty"`
	// fieldRef is a field of the instance's pod.
	// +optional
	FieldRef *FieldReference `json:"fieldRef,omitempty"`
}

// KeyReference names a key of an object of the function's own namespace.
type KeyReference struct {
	// name is the name of the object.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?([.][a-z0-9]([-a-z0-9]*[a-z0-9])?)*$')",message="must be the name of an object of this namespace, in lower-case letters, digits, hyphens and dots; write for example my-object"
	Name string `json:"name,omitempty"`
	// key is the key in the object.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:XValidation:rule="self.matches('^[-._a-zA-Z0-9]+$') && self != '.' && !self.startsWith('..')",message="must be the key of a Secret or a ConfigMap, in letters, digits, '-', '_' and '.'; write for example password"
	Key string `json:"key,omitempty"`
	// optional lets instances start if the object or the key is missing; the
	// variable is then not set. The default is false.
	// +optional
	Optional bool `json:"optional,omitempty"`
}

// FieldReference names a field of the instance's pod.
type FieldReference struct {
	// fieldPath is metadata.name, metadata.namespace, metadata.uid,
	// metadata.labels['KEY'], metadata.annotations['KEY'], spec.nodeName,
	// spec.serviceAccountName, status.hostIP, status.hostIPs, status.podIP or
	// status.podIPs. Local mode has the first two only, and metadata.name is then
	// the name of the instance.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=352
	// +kubebuilder:validation:XValidation:rule="self in ['metadata.name', 'metadata.namespace', 'metadata.uid', 'spec.nodeName', 'spec.serviceAccountName', 'status.hostIP', 'status.hostIPs', 'status.podIP', 'status.podIPs'] || self.matches(\"^metadata[.](labels|annotations)[[]'([a-z0-9]([-a-z0-9.]*[a-z0-9])?/)?[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?'[]]$\")",message="must be a field of the pod: metadata.name, .namespace, .uid, .labels['KEY'] or .annotations['KEY'], spec.nodeName or .serviceAccountName, status.hostIP, .hostIPs, .podIP or .podIPs; write for example metadata.name"
	FieldPath string `json:"fieldPath,omitempty"`
}

// Resources are the compute resources of one instance, as a container of Kubernetes has
// them: of cpu, memory and ephemeral-storage, and of extended resources, whose names have
// a domain, such as nvidia.com/gpu.
type Resources struct {
	// requests are what is reserved for an instance on its node: cpu in cores, at
	// least 1m, where "250m" is a quarter of a core; memory and ephemeral-storage
	// in bytes, at least 1Mi, where "128Mi" is 128 times 2^20; and extended
	// resources. The default is 100m cpu and 64Mi memory, or the limit if that is
	// lower; of an extended resource it is the limit.
	// +optional
	// +kubebuilder:validation:MaxProperties=8
	Requests corev1.ResourceList `json:"requests,omitempty"`
	// limits are how much an instance may use at most, not less than its requests
	// and in the same units. By default cpu and memory have no limit; the limit of
	// ephemeral-storage, the disk that an instance may write to, is 1Gi, or the
	// request if that is more. An extended resource, such as nvidia.com/gpu, is a
	// whole number.
	// +optional
	// +kubebuilder:validation:MaxProperties=8
	Limits corev1.ResourceList `json:"limits,omitempty"`
}
