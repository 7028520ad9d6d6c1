package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// KindRuntime is what a Runtime manifest's kind field says.
const KindRuntime = "Runtime"

// KindClusterRuntime is what a runtimeRef says that means a Runtime of the cluster.
const KindClusterRuntime = "ClusterRuntime"

// Runtime is a language runtime of a cluster: an image that runs code which is
// mounted into it. It is told what to run as the custom runtimes of AWS Lambda
// are: the code is in the folder LAMBDA_TASK_ROOT, _HANDLER names the handler,
// and AWS_LAMBDA_RUNTIME_API is where events come from.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:scope=Cluster,shortName=rt,categories=windlass
// +kubebuilder:printcolumn:name="Image",type=string,JSONPath=`.spec.image`
// +kubebuilder:printcolumn:name="Protocol",type=string,JSONPath=`.spec.protocol`
// +kubebuilder:printcolumn:name="WarmPool",type=integer,JSONPath=`.spec.warmPool.size`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:validation:XValidation:rule="self.metadata.name.matches('^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$')",fieldPath=".metadata",message="name must be 1 to 63 lower-case letters, digits and hyphens, with a letter or digit at both ends; write for example python3"
type Runtime struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitzero"`

	Spec RuntimeSpec `json:"spec"`
}

// RuntimeList is a list of Runtimes.
//
// +kubebuilder:object:root=true
type RuntimeList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitzero"`

	Items []Runtime `json:"items"`
}

// RuntimeSpec says what runs a function's code. The protocol cannot change for
// the reason that a Function's cannot.
//
// +kubebuilder:validation:XValidation:rule="!has(self.warmPool) || (has(self.protocol) && self.protocol == 'LambdaRuntime')",fieldPath=".warmPool",message="needs the protocol LambdaRuntime, by which alone code is handed to a runtime that has started; remove warmPool"
// +kubebuilder:validation:XValidation:rule="!has(self.warmPool) || (has(self.fileExtension) && size(self.fileExtension) > 0)",fieldPath=".warmPool",message="needs fileExtension, since only inline code is handed to a spare instance; write for example fileExtension: py"
type RuntimeSpec struct {
	// Image holds the interpreter and whatever loads the handler.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=1024
	// +kubebuilder:validation:XValidation:rule="self.matches('^[0-9A-Za-z][0-9A-Za-z._:/@-]*$') && !self.contains('://')",message="must be the reference of an image; write for example example.com/team/runtime:1.0"
	Image string `json:"image"`
	// Command replaces the image's entrypoint.
	// +listType=atomic
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=64
	// +kubebuilder:validation:items:MaxLength=32768
	// +kubebuilder:validation:XValidation:rule="self.size() == 0 || self[0] != ''",message="the program is missing; write for example command: [\"/runtime/bootstrap\"]"
	Command []string `json:"command,omitempty"`
	// Protocol is what functions of this runtime speak unless they say
	// otherwise. The default is LambdaRuntime. It cannot change.
	// +kubebuilder:default=LambdaRuntime
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="cannot change, because functions of this runtime have callers of the old one; make a new Runtime"
	Protocol Protocol `json:"protocol,omitempty"`
	// FileExtension is that of a file with inline code, such as "py".
	// +kubebuilder:validation:MaxLength=16
	// +kubebuilder:validation:XValidation:rule="self.matches('^[0-9A-Za-z]*$')",message="must be letters and digits without a dot; write for example py"
	FileExtension string `json:"fileExtension,omitempty"`
	// Env are environment variables of every function of this runtime; those
	// of the function win.
	// +kubebuilder:validation:MaxItems=256
	// +listType=map
	// +listMapKey=name
	Env []EnvVar `json:"env,omitempty"`
	// WarmPool keeps spare instances: pods in which the runtime has loaded, but
	// no function. There are none by default.
	WarmPool *WarmPool `json:"warmPool,omitempty"`
}

// WarmPool is a stock of spare instances of a Runtime. A function that needs an
// instance takes one, which then loads the function's code and is its instance
// for good. Each namespace has a stock of its own, as long as it has a function
// that could take a spare instance.
type WarmPool struct {
	// Size is how many there are in a namespace at most, 1 to 100.
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=100
	Size int32 `json:"size"`
	// Resources are those of a spare instance. Only functions with the same
	// ones can take it.
	// +kubebuilder:default={}
	Resources Resources `json:"resources,omitzero"`
}
