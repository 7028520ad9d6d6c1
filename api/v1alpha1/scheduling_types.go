package v1alpha1

import "fmt"

// SchedulingClass says what an instance gets of a node's cores that others want, too.
//
// +kubebuilder:validation:Enum=LatencyCritical;Standard;Batch
type SchedulingClass string

const (
	// ClassLatencyCritical never waits for a core and never yields one. It is a right of
	// namespaces; elsewhere it counts as ClassStandard.
	ClassLatencyCritical SchedulingClass = "LatencyCritical"
	// ClassStandard waits for a core and yields it in the order of the node.
	ClassStandard SchedulingClass = "Standard"
	// ClassBatch gets what others leave of the cores, at all times.
	ClassBatch SchedulingClass = "Batch"
)

// Scheduling says how the instances of a function share the cores of their node. It means
// something on nodes with a node agent, and in local mode with --node-scheduling.
//
// +kubebuilder:validation:XValidation:rule="!has(self.slice) || !has(self.class) || self.class != 'LatencyCritical'",fieldPath=".slice",reason=FieldValueForbidden,message="calls of class LatencyCritical never yield, so they have no slice; remove slice, or write class: Standard"
// +kubebuilder:validation:XValidation:rule="!has(self.slice) || !has(self.class) || self.class != 'Batch'",fieldPath=".slice",reason=FieldValueForbidden,message="calls of class Batch always yield, so they have no slice; remove slice, or write class: Standard"
type Scheduling struct {
	// class is what the instances get of cores that others want, too. Standard:
	// while the node is busy, calls wait for a core in the node's order, and long
	// ones yield. LatencyCritical: calls never wait and never yield; only in
	// namespaces that the administrator names, and Standard elsewhere. Batch: the
	// instances always get what others leave. The default is Standard. More values
	// may come.
	// +optional
	// +kubebuilder:default=Standard
	Class SchedulingClass `json:"class,omitempty"`
	// slice is the processor time after which a call yields, 10ms to 1h, such as
	// 50ms. It can only shorten what the node gives, and only class Standard has
	// one. The default is the node's.
	// +optional
	// +kubebuilder:validation:XValidation:rule="self.matches('^([0-9]{1,5}(h|m|s|ms)){1,4}$') && duration(self) >= duration('10ms') && duration(self) <= duration('1h')",message="must be a duration of 10ms to 1h; write for example 50ms"
	Slice Duration `json:"slice,omitzero"`
}

// UnusualClass is the class as agents and node agents say it: empty for ClassStandard.
func (s *Scheduling) UnusualClass() string {
	if s.Class == ClassStandard {
		return ""
	}
	return string(s.Class)
}

// Asked is what of it is not the default, in words, such as "class Batch" or "slice 50ms"; empty if
// nothing is.
func (s *Scheduling) Asked() string {
	switch class := s.UnusualClass(); {
	case class != "":
		return "class " + class
	case s.Slice.Duration > 0:
		return fmt.Sprintf("slice %s", s.Slice)
	}
	return ""
}
