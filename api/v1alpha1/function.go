package v1alpha1

import (
	"path/filepath"

	"github.com/windlass-dev/windlass/pkg/invoke"
)

// Key is the function's namespace and name.
func (f *Function) Key() invoke.FunctionKey {
	return invoke.FunctionKey{Namespace: f.Namespace, Name: f.Name}
}

// Algorithm is the one that the function's author tries, or "".
func (f *Function) Algorithm() string { return f.Annotations[AnnotationAlgorithm] }

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
