package v1alpha1

import (
	"maps"
	"path/filepath"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/windlass-dev/windlass/api/wellknown"
	"github.com/windlass-dev/windlass/pkg/invocation"
)

// Key is the function's namespace and name.
func (f *Function) Key() invocation.FunctionKey {
	return invocation.FunctionKey{Namespace: f.Namespace, Name: f.Name}
}

// Algorithm is the one that the function's author tries, or "".
func (f *Function) Algorithm() string { return f.Annotations[wellknown.AnnotationAlgorithm] }

// Equal tells whether both name the same amounts, however these are written.
func (r *Resources) Equal(o *Resources) bool {
	return maps.EqualFunc(r.Requests, o.Requests, resource.Quantity.Equal) && maps.EqualFunc(r.Limits, o.Limits, resource.Quantity.Equal)
}

// Memory is how many bytes an instance may use: the limit or, without one, the request; 0
// if nothing is said.
func (r *Resources) Memory() int64 {
	if limit, limited := r.Limits[corev1.ResourceMemory]; limited {
		return limit.Value()
	}
	return r.Requests.Memory().Value()
}

// ResolvePaths makes a relative spec.template.code.path start at dir, which must be
// absolute: the folder of the manifest. A path that is absolute already is only
// tidied. A command without code gets dir itself, which is where it runs.
func ResolvePaths(f *Function, dir string) {
	t := &f.Spec.Template
	if t.Code == nil && t.Image == "" && len(t.Command) > 0 {
		t.Code = &Code{Path: "."}
	}
	if t.Code == nil || t.Code.Path == "" {
		return
	}
	if filepath.IsAbs(t.Code.Path) {
		t.Code.Path = filepath.Clean(t.Code.Path)
		return
	}
	t.Code.Path = filepath.Join(dir, t.Code.Path)
}
