package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// KindClusterRuntime is what a ClusterRuntime manifest's kind field says, and a runtimeRef
// that means one.
const KindClusterRuntime = "ClusterRuntime"

// ClusterRuntime is a language runtime of a cluster: an image that runs code which is
// mounted into it. It learns what to run in the way of AWS Lambda's custom
// runtimes: the code is in the folder LAMBDA_TASK_ROOT, _HANDLER names the handler,
// and AWS_LAMBDA_RUNTIME_API is where events come from.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:scope=Cluster,shortName=wrt,categories=windlass
// +kubebuilder:printcolumn:name="Image",type=string,JSONPath=`.spec.image`
// +kubebuilder:printcolumn:name="Protocol",type=string,JSONPath=`.spec.protocol`
// +kubebuilder:printcolumn:name="Contract",type=string,priority=1,JSONPath=`.spec.contract`
// +kubebuilder:printcolumn:name="WarmPool",type=integer,JSONPath=`.spec.warmPools[0].size`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:validation:XValidation:rule="size(self.metadata.name) <= 63 && self.metadata.name.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?([.][a-z0-9]([-a-z0-9]*[a-z0-9])?)*$')",fieldPath=".metadata",message="name must be 1 to 63 lower-case letters, digits, hyphens and dots, with a letter or digit at both ends; write for example ruby3.4"
type ClusterRuntime struct {
	metav1.TypeMeta `json:",inline"`
	// metadata is that of every object.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitzero"`

	// spec is what runs the code of functions.
	// +required
	Spec ClusterRuntimeSpec `json:"spec,omitzero"`
}

// ClusterRuntimeList is a list of ClusterRuntimes.
//
// +kubebuilder:object:root=true
type ClusterRuntimeList struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ListMeta `json:"metadata,omitzero"`

	// +required
	Items []ClusterRuntime `json:"items"`
}

// ContractV1 is the first way in which Windlass and the image of a runtime talk to each
// other, which docs/runtimes.md describes.
const ContractV1 = "v1"

// ClusterRuntimeSpec says what runs a function's code. The protocol cannot change for
// the reason that a Function's cannot.
//
// +kubebuilder:validation:XValidation:rule="!has(self.warmPools) || (has(self.protocol) && self.protocol == 'LambdaRuntime')",fieldPath=".warmPools",message="need the protocol LambdaRuntime, by which alone code is handed to a runtime that has started; remove warmPools"
// +kubebuilder:validation:XValidation:rule="!has(self.warmPools) || (has(self.fileExtension) && size(self.fileExtension) > 0)",fieldPath=".warmPools",message="need fileExtension, since only inline code is handed to a spare instance; write for example fileExtension: py"
type ClusterRuntimeSpec struct {
	// contract is the version of what Windlass and the image expect of each other.
	// The default is v1, and there is no other yet.
	// +optional
	// +kubebuilder:default=v1
	// +kubebuilder:validation:Enum=v1
	Contract string `json:"contract,omitempty"`
	// image is the container image that holds the interpreter and the program that
	// loads handlers.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=1024
	// +kubebuilder:validation:XValidation:rule="self.matches('^[0-9A-Za-z][0-9A-Za-z._:/@-]*$') && !self.contains('://')",message="must be the reference of an image; write for example example.com/team/runtime:1.0"
	Image string `json:"image,omitempty"`
	// command replaces the image's entrypoint.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=64
	// +kubebuilder:validation:items:MinLength=0
	// +kubebuilder:validation:items:MaxLength=32768
	// +kubebuilder:validation:XValidation:rule="self.size() == 0 || self[0] != ''",message="the program is missing; write for example command: [\"/runtime/bootstrap\"]"
	Command []string `json:"command,omitempty"`
	// protocol is the protocol of functions of this runtime that name none. The
	// default is LambdaRuntime. It cannot change.
	// +optional
	// +kubebuilder:default=LambdaRuntime
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="cannot change, because functions of this runtime have callers of the old one; make a new ClusterRuntime"
	Protocol Protocol `json:"protocol,omitempty"`
	// fileExtension is the extension of the file that holds inline code, such as
	// "py".
	// +optional
	// +kubebuilder:validation:MinLength=0
	// +kubebuilder:validation:MaxLength=16
	// +kubebuilder:validation:XValidation:rule="self.matches('^[0-9A-Za-z]*$')",message="must be letters and digits without a dot; write for example py"
	FileExtension string `json:"fileExtension,omitempty"`
	// env are environment variables of every function of this runtime. Variables
	// of the function win. valueFrom is refused here.
	// +optional
	// +kubebuilder:validation:MaxItems=256
	// +kubebuilder:validation:XValidation:rule="self.all(v, !has(v.valueFrom))",reason=FieldValueForbidden,message="a runtime is of all namespaces, and Secrets and ConfigMaps are of one; write a value, and valueFrom in the functions"
	// +listType=map
	// +listMapKey=name
	Env []EnvVar `json:"env,omitempty"`
	// warmPools keep spare instances: pods in which the runtime has loaded, but no
	// function. There is at most one for now, and none by default.
	// +optional
	// +kubebuilder:validation:MaxItems=1
	// +listType=map
	// +listMapKey=name
	WarmPools []WarmPool `json:"warmPools,omitempty"`
}

// WarmPool is a stock of spare instances of a runtime. A function that needs an
// instance takes one, which then loads the function's code and is its instance
// for good. Each namespace has a stock of its own, as long as it has a function
// that could take a spare instance.
type WarmPool struct {
	// name of the pool within its runtime.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?$')",message="must be lower-case letters, digits and hyphens, with a letter or digit at both ends; write for example small"
	Name string `json:"name,omitempty"`
	// size is how many there are in a namespace at most, 1 to 100.
	// +required
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=100
	Size int32 `json:"size,omitempty"`
	// resources are those of a spare instance. Only functions with the same ones can take
	// it.
	// +optional
	// +kubebuilder:default={}
	Resources Resources `json:"resources,omitzero"`
}

// Pool is the runtime's warm pool, or nil.
func (s *ClusterRuntimeSpec) Pool() *WarmPool {
	if len(s.WarmPools) == 0 {
		return nil
	}
	return &s.WarmPools[0]
}
