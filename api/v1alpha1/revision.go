package v1alpha1

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/windlass-dev/windlass/api/wellknown"
)

// AnnotationCodeStamp is a digest of the files that a Function's code.path names, as
// they were when it was deployed. The store of a local Windlass sets it, because the
// spec does not have the code. In a cluster it means nothing.
const AnnotationCodeStamp = "local.windlass.dev/code"

// Annotations of a unit, which is one revision as a function of its own: the number of
// its FunctionRevision, as Revision has it, the UID of its function, and whether its
// spec's minInstances is 1 only to prove that the revision starts.
const (
	AnnotationRevision    = GroupName + "/revision"
	AnnotationFunctionUID = GroupName + "/function-uid"
	AnnotationProving     = GroupName + "/proving"
)

// OfUnits tells whether an annotation is one of units, which no Function has.
func OfUnits(annotation string) bool {
	return annotation == AnnotationRevision || annotation == AnnotationFunctionUID || annotation == AnnotationProving
}

// Revision names what an instance of the function is. That of a unit is the number of
// its FunctionRevision. A function without revisions is its own only unit, and has the
// meaning of its template.
func (f *Function) Revision() string {
	if number := f.Annotations[AnnotationRevision]; number != "" {
		return number
	}
	return f.meaning()
}

// Proving tells whether a unit has one instance at least only to prove that it starts.
func (f *Function) Proving() bool { return f.Annotations[AnnotationProving] != "" }

// FunctionUID is the UID of the function, also if f is a unit of it.
func (f *Function) FunctionUID() string {
	if uid := f.Annotations[AnnotationFunctionUID]; uid != "" {
		return uid
	}
	return string(f.UID)
}

// FunctionRevisionName is the name of a unit's FunctionRevision, or "".
func (f *Function) FunctionRevisionName() string {
	if number := f.Annotations[AnnotationRevision]; number != "" {
		return f.Name + "-" + number
	}
	return ""
}

// meaning is RevisionOf the template and, where that only names a path, of the files there.
func (f *Function) meaning() string {
	return meaning(&f.Spec.Template, f.Annotations[AnnotationCodeStamp])
}

func meaning(t *FunctionTemplate, stamp string) string {
	revision := RevisionOf(t)
	if stamp != "" {
		return digest([]byte(revision + stamp))
	}
	return revision
}

// Of tells whether the revision is one of a function's.
func (r *FunctionRevision) Of(f *Function) bool {
	owner := metav1.GetControllerOf(r)
	return owner != nil && owner.UID == f.UID
}

// Is tells whether the revision is what the function's template says now.
func (r *FunctionRevision) Is(f *Function) bool {
	return meaning(&r.Spec.Template, r.Annotations[AnnotationCodeStamp]) == f.meaning()
}

// Proven tells whether an instance of the revision has started.
func (r *FunctionRevision) Proven() bool {
	return meta.IsStatusConditionTrue(r.Status.Conditions, ConditionReady)
}

// InactiveSince is when the last call was routed to a revision that gets no more; zero if
// it gets some or never got all.
func (r *FunctionRevision) InactiveSince() *metav1.Time {
	active := meta.FindStatusCondition(r.Status.Conditions, ConditionActive)
	if active == nil || active.Status != metav1.ConditionFalse || r.Status.FullTrafficTime.IsZero() {
		return nil
	}
	return &active.LastTransitionTime
}

// Label is what the revision's pods bear, and what its instances say of themselves: its
// number, because its whole name may be too long for a label.
func (r *FunctionRevision) Label() string { return fmt.Sprintf("%05d", r.Spec.Number) }

// RevisionName is the name of the FunctionRevision that a Function's generation makes.
func RevisionName(function string, generation int64) string {
	return fmt.Sprintf("%s-%05d", function, generation)
}

// NewRevision is the FunctionRevision of a function's template as it is now. The function
// has its defaults.
func NewRevision(f *Function) *FunctionRevision {
	r := &FunctionRevision{
		TypeMeta: metav1.TypeMeta{APIVersion: APIVersion, Kind: KindFunctionRevision},
		ObjectMeta: metav1.ObjectMeta{
			Namespace: f.Namespace, Name: RevisionName(f.Name, f.Generation),
			Labels: map[string]string{wellknown.LabelFunction: f.Name, wellknown.LabelFunctionUID: string(f.UID), wellknown.LabelManagedBy: wellknown.ManagedBy},
			OwnerReferences: []metav1.OwnerReference{
				*metav1.NewControllerRef(f, GroupVersion.WithKind(KindFunction)),
			},
		},
		Spec: FunctionRevisionSpec{FunctionName: f.Name, Number: f.Generation, Template: *f.Spec.Template.DeepCopy()},
	}
	if stamp := f.Annotations[AnnotationCodeStamp]; stamp != "" {
		r.Annotations = map[string]string{AnnotationCodeStamp: stamp}
	}
	return r
}

// RevisionOf identifies a template. Two templates that mean the same have the same
// revision, whatever of them was left out, and however an amount was written. A field
// that a later release adds, and that says nothing or its default, changes no revision:
// pods bear theirs for longer than a release lasts.
func RevisionOf(t *FunctionTemplate) string { return digest(canonical(bare(t))) }

func digest(text []byte) string {
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:5])
}

// canonical is a value as JSON, without groups of fields that are empty, and with fields
// in the order of their names, so that it does not matter where the code puts them.
func canonical(v any) []byte {
	var fields map[string]any
	text, err := json.Marshal(v)
	if err == nil {
		err = json.Unmarshal(text, &fields)
	}
	if err == nil {
		prune(fields)
		text, err = json.Marshal(fields)
	}
	if err != nil {
		// A template that was read from JSON or YAML can be written.
		panic("v1alpha1: a template that cannot be encoded: " + err.Error())
	}
	return text
}

func prune(fields map[string]any) {
	for name, value := range fields {
		if group, ok := value.(map[string]any); ok {
			if prune(group); len(group) == 0 {
				delete(fields, name)
			}
		}
	}
}

// bare is the template without the fields that say what holds without them.
func bare(t *FunctionTemplate) *FunctionTemplate {
	t = t.DeepCopy()
	without(&t.RuntimeRef.Kind, KindClusterRuntime)
	without(&t.Protocol, t.defaultProtocol())
	without(&t.Port, DefaultPort)
	without(&t.Concurrency, DefaultConcurrency)
	without(&t.Timeout, Duration{DefaultTimeout})
	without(&t.StartupTimeout, Duration{DefaultStartupTimeout})
	without(&t.Scheduling.Class, ClassStandard)
	t.Resources = bareResources(&t.Resources)
	bareMounts(t.Mounts)
	return t
}

func without[T comparable](field *T, def T) {
	if *field == def {
		var zero T
		*field = zero
	}
}

// bareResources leaves out the requests that DefaultResources fills in, and writes every
// amount in the one way that all equal ones have.
func bareResources(r *Resources) Resources {
	asked := Resources{Limits: r.Limits}
	DefaultResources(&asked)
	return Resources{Requests: bareList(r.Requests, asked.Requests), Limits: bareList(r.Limits, nil)}
}

// bareList is a list without what is the default.
func bareList(list, defaults corev1.ResourceList) corev1.ResourceList {
	out := make(corev1.ResourceList, len(list))
	for name, q := range list {
		if def, there := defaults[name]; there && q.Cmp(def) == 0 {
			continue
		}
		out[name] = *plain(q)
	}
	return out
}

// bareMounts writes sizes as bareResources does; 0 is no limit.
func bareMounts(mounts []Mount) {
	for _, m := range mounts {
		if m.EmptyDir == nil || m.EmptyDir.SizeLimit == nil {
			continue
		}
		size := m.EmptyDir.SizeLimit
		if m.EmptyDir.SizeLimit = nil; !size.IsZero() {
			m.EmptyDir.SizeLimit = plain(*size)
		}
	}
}

// plain is an amount in the one way that all equal ones are written.
func plain(q resource.Quantity) *resource.Quantity {
	amount := q.DeepCopy()
	return resource.NewDecimalQuantity(*amount.AsDec(), resource.DecimalSI)
}
