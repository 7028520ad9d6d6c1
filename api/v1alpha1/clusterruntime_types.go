package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// KindClusterRuntime is what a ClusterRuntime manifest's kind field says, and a runtimeRef
// that means one.
const KindClusterRuntime = "ClusterRuntime"

// ClusterRuntime is a language runtime of a cluster: an image that runs code which is
// mounted into it. It works like a custom runtime of AWS Lambda: the code is in the
// folder LAMBDA_TASK_ROOT, _HANDLER names the handler, and AWS_LAMBDA_RUNTIME_API is
// the address that it gets events from.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:scope=Cluster,shortName=wrt,categories=windlass
// +kubebuilder:subresource:status
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`,description="Whether functions can use it"
// +kubebuilder:printcolumn:name="Reason",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].reason`,description="Why it is ready or not"
// +kubebuilder:printcolumn:name="Image",type=string,JSONPath=`.spec.image`
// +kubebuilder:printcolumn:name="Protocol",type=string,JSONPath=`.spec.protocol`
// +kubebuilder:printcolumn:name="Spare",type=integer,JSONPath=`.status.spareInstances.ready`,description="Spare instances that functions can take"
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:printcolumn:name="Wanted",type=integer,priority=1,JSONPath=`.status.spareInstances.desired`,description="Desired number of spare instances"
// +kubebuilder:printcolumn:name="Contract",type=string,priority=1,JSONPath=`.spec.contract`
// +kubebuilder:validation:XValidation:rule="size(self.metadata.name) <= 63 && self.metadata.name.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?([.][a-z0-9]([-a-z0-9]*[a-z0-9])?)*$')",fieldPath=".metadata",message="name must be 1 to 63 lower-case letters, digits, hyphens and dots, with a letter or digit at both ends; write for example ruby3.4"
type ClusterRuntime struct {
	metav1.TypeMeta `json:",inline"`
	// metadata is that of every object.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitzero"`

	// spec is what runs the code of functions.
	// +required
	Spec ClusterRuntimeSpec `json:"spec,omitzero"`
	// status is what Windlass observes of the runtime.
	// +optional
	// +kubebuilder:default={conditions: {{type: "Ready", status: "Unknown", reason: "Pending", message: "no controller has looked at the runtime yet", lastTransitionTime: "1970-01-01T00:00:00Z"}}}
	Status ClusterRuntimeStatus `json:"status,omitzero"`
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
// +kubebuilder:validation:XValidation:rule="!has(self.warmPools) || (has(self.protocol) && self.protocol == 'LambdaRuntime')",fieldPath=".warmPools",message="need the protocol LambdaRuntime, the only one that can hand code to a running runtime; remove warmPools"
// +kubebuilder:validation:XValidation:rule="!has(self.warmPools) || (has(self.fileExtension) && size(self.fileExtension) > 0)",fieldPath=".warmPools",message="need fileExtension, because a spare instance gets only inline code; write for example fileExtension: py"
type ClusterRuntimeSpec struct {
	// contract is the version of the contract between Windlass and the image. The
	// default is v1, the only version so far.
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
	// +kubebuilder:validation:XValidation:rule="self.all(v, !has(v.valueFrom))",reason=FieldValueForbidden,message="a ClusterRuntime serves all namespaces, but a Secret or ConfigMap is in one; write a value here, or valueFrom in the functions"
	// +listType=map
	// +listMapKey=name
	Env []EnvVar `json:"env,omitempty"`
	// warmPools keep spare instances: pods in which the runtime has loaded, but no
	// function. There are at most 8, and none by default. A function takes from the first
	// that has its resources and admits its namespace, so of pools with equal resources each
	// needs a namespaceSelector, and no two should admit the same namespace.
	// +optional
	// +kubebuilder:validation:MaxItems=8
	// +kubebuilder:validation:XValidation:rule="self.all(a, self.all(b, a.name == b.name || a.resources != b.resources || (has(a.namespaceSelector) && has(b.namespaceSelector) && a.namespaceSelector != b.namespaceSelector)))",message="two with equal resources admit the same namespaces, and functions would take from the first only; give each a namespaceSelector of its own, or make them one with a larger size"
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
	// size is the largest number of spare instances in a namespace, 1 to 100.
	// +required
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=100
	Size int32 `json:"size,omitempty"`
	// resources are the resources of a spare instance: cpu, memory and
	// ephemeral-storage. Only functions with the same resources can take it.
	// +optional
	// +kubebuilder:validation:XValidation:rule="!has(self.requests) || self.requests.all(k, k in ['cpu', 'memory', 'ephemeral-storage'])",fieldPath=".requests",message="a spare instance holds no extended resources; write cpu, memory or ephemeral-storage, and functions with others start pods of their own"
	// +kubebuilder:validation:XValidation:rule="!has(self.limits) || self.limits.all(k, k in ['cpu', 'memory', 'ephemeral-storage'])",fieldPath=".limits",message="a spare instance holds no extended resources; write cpu, memory or ephemeral-storage, and functions with others start pods of their own"
	// +kubebuilder:default={}
	Resources Resources `json:"resources,omitzero"`
	// namespaceSelector selects, by their labels, the namespaces in which the pool keeps
	// spare instances. The default is all namespaces that may have functions. Every
	// namespace has the label kubernetes.io/metadata.name.
	// +optional
	NamespaceSelector *NamespaceSelector `json:"namespaceSelector,omitempty"`
}

// NamespaceSelector picks namespaces by their labels, in the words of a LabelSelector of
// Kubernetes, but with bounds. Everything in it must hold. An empty one picks all
// namespaces.
//
// +structType=atomic
type NamespaceSelector struct {
	// matchLabels are labels that a namespace must have. At most 8.
	// +optional
	// +kubebuilder:validation:MaxProperties=8
	MatchLabels map[string]string `json:"matchLabels,omitempty"`
	// matchExpressions are requirements on labels. At most 8.
	// +optional
	// +kubebuilder:validation:MaxItems=8
	// +listType=atomic
	MatchExpressions []NamespaceRequirement `json:"matchExpressions,omitempty"`
}

// NamespaceRequirement is a requirement on one label of a namespace.
//
// +kubebuilder:validation:XValidation:rule="(self.operator in ['In', 'NotIn']) == (has(self.values) && size(self.values) > 0)",fieldPath=".values",message="In and NotIn need values, and Exists and DoesNotExist have none; write for example {key: team, operator: In, values: [payments]}"
type NamespaceRequirement struct {
	// key of the label.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=317
	// +kubebuilder:validation:XValidation:rule="self.matches('^([a-z0-9]([-a-z0-9]*[a-z0-9])?([.][a-z0-9]([-a-z0-9]*[a-z0-9])?)*/)?[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?$')",message="must be the key of a label: a name, or a domain, / and a name; write for example team, or example.com/team"
	Key string `json:"key,omitempty"`
	// operator is the kind of requirement. In: the label has one of values. NotIn: it has
	// none of values, or is missing. Exists: the namespace has the label. DoesNotExist: it
	// does not.
	// +required
	// +kubebuilder:validation:Enum=In;NotIn;Exists;DoesNotExist
	Operator metav1.LabelSelectorOperator `json:"operator,omitempty"`
	// values are the values for In and NotIn, 1 to 64.
	// +optional
	// +kubebuilder:validation:MaxItems=64
	// +kubebuilder:validation:items:MinLength=0
	// +kubebuilder:validation:items:MaxLength=63
	// +listType=atomic
	Values []string `json:"values,omitempty"`
}

// ClusterRuntimeStatus is what Windlass observes of a ClusterRuntime.
type ClusterRuntimeStatus struct {
	// conditions are Ready, Accepted and WarmPoolsReady and, while it is true, Stalled.
	// +optional
	// +listType=map
	// +listMapKey=type
	// +kubebuilder:validation:MaxItems=16
	Conditions []metav1.Condition `json:"conditions,omitempty"`
	// observedGeneration is the metadata.generation that this status is about.
	// +optional
	// +kubebuilder:validation:Minimum=0
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
	// spareInstances counts the spare instances of all warm pools in all namespaces. It
	// can be some seconds old.
	// +optional
	SpareInstances SpareCounts `json:"spareInstances"`
	// warmPools count the spare instances of each pool, in the order of
	// spec.warmPools.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=8
	WarmPools []WarmPoolStatus `json:"warmPools,omitempty"`
}

// WarmPoolStatus is what Windlass observes of one warm pool in all namespaces.
type WarmPoolStatus struct {
	// name of the pool.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	Name        string `json:"name,omitempty"`
	SpareCounts `json:",inline"`
}

// SpareCounts counts spare instances.
type SpareCounts struct {
	// ready spare instances can be taken by functions.
	// +optional
	// +kubebuilder:validation:Minimum=0
	Ready int32 `json:"ready"`
	// desired is how many spare instances Windlass keeps: the pool's size in each namespace
	// with functions that can take one.
	// +optional
	// +kubebuilder:validation:Minimum=0
	Desired int32 `json:"desired"`
}

// Pool is the runtime's warm pool of that name, or nil.
func (s *ClusterRuntimeSpec) Pool(name string) *WarmPool {
	for i := range s.WarmPools {
		if s.WarmPools[i].Name == name {
			return &s.WarmPools[i]
		}
	}
	return nil
}
