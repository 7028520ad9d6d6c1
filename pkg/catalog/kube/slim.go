package kube

import (
	"crypto/sha256"
	"encoding/hex"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	toolscache "k8s.io/client-go/tools/cache"

	"github.com/windlass-dev/windlass/api/v1alpha1"
	"github.com/windlass-dev/windlass/pkg/catalog"
)

// lastApplied is the annotation in which kubectl apply repeats a whole Function.
const lastApplied = "kubectl.kubernetes.io/last-applied-configuration"

// Transform is for the informers of a Source with this Config. It leaves out what their
// program does not ask for, and what the authors of Functions can make long, and lets objects
// share what they have alike.
func (c Config) Transform() toolscache.TransformFunc {
	lists, keep := new(catalog.Lists), slimWithoutCode
	if c.Code {
		keep = slim
	}
	return func(object any) (any, error) {
		switch o := object.(type) {
		case *v1alpha1.Function:
			lists.Share(&o.Spec.Template)
		case *v1alpha1.FunctionRevision:
			lists.Share(&o.Spec.Template)
		}
		return keep(object)
	}
}

// slim leaves out the stamp of a local Windlass, too: it would make a revision, whose name is taken because
// no generation counts annotations.
func slim(object any) (any, error) {
	if o, ok := object.(metav1.Object); ok {
		o.SetManagedFields(nil)
		delete(o.GetAnnotations(), lastApplied)
		delete(o.GetAnnotations(), v1alpha1.AnnotationCodeStamp)
	}
	return object, nil
}

// slimWithoutCode keeps a digest of inline code, so that a change of it is one still,
// and the object is as valid as it was.
func slimWithoutCode(object any) (any, error) {
	switch o := object.(type) {
	case *v1alpha1.Function:
		slimTemplate(&o.Spec.Template)
	case *v1alpha1.FunctionRevision:
		slimTemplate(&o.Spec.Template)
	}
	return slim(object)
}

func slimTemplate(t *v1alpha1.FunctionTemplate) {
	if code := t.Code; code != nil && code.Inline != "" && len(code.Inline) <= v1alpha1.MaxInlineCode {
		sum := sha256.Sum256([]byte(code.Inline))
		code.Inline = hex.EncodeToString(sum[:])
	}
}
