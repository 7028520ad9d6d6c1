package v1alpha1

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// AnnotationCodeStamp is a digest of the files that a Function's code.path names, as
// they were when it was deployed. The store of a local Windlass sets it, because the
// spec does not have the code.
const AnnotationCodeStamp = "local.windlass.dev/code"

// Revision identifies what an instance of the function is: instances of another
// revision are replaced. It is RevisionOf the template and, where the template only
// names a path, of the files there.
func (f *Function) Revision() string {
	revision := RevisionOf(&f.Spec.Template)
	if stamp := f.Annotations[AnnotationCodeStamp]; stamp != "" {
		return digest([]byte(revision + stamp))
	}
	return revision
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
