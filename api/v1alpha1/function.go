package v1alpha1

import (
	"path/filepath"

	corev1 "k8s.io/api/core/v1"

	"github.com/windlass-dev/windlass/pkg/invoke"
)

// Key is the function's namespace and name.
func (f *Function) Key() invoke.FunctionKey {
	return invoke.FunctionKey{Namespace: f.Namespace, Name: f.Name}
}

// Algorithm is the one that the function's author tries, or "".
func (f *Function) Algorithm() string { return f.Annotations[AnnotationAlgorithm] }

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
