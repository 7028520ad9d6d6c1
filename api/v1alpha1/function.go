package v1alpha1

import (
	"path/filepath"

	"github.com/windlass-dev/windlass/pkg/invoke"
)

// Key is the function's namespace and name.
func (f *Function) Key() invoke.FunctionKey {
	return invoke.FunctionKey{Namespace: f.Namespace, Name: f.Name}
}

// ResolvePaths makes a relative spec.code.path start at dir, which must be
// absolute: the folder of the manifest. A path that is absolute already is only
// tidied. A command without code gets dir itself, which is where it runs.
func ResolvePaths(f *Function, dir string) {
	if f.Spec.Code == nil && f.Spec.Image == "" && len(f.Spec.Command) > 0 {
		f.Spec.Code = &Code{Path: "."}
	}
	if f.Spec.Code == nil || f.Spec.Code.Path == "" {
		return
	}
	if filepath.IsAbs(f.Spec.Code.Path) {
		f.Spec.Code.Path = filepath.Clean(f.Spec.Code.Path)
		return
	}
	f.Spec.Code.Path = filepath.Join(dir, f.Spec.Code.Path)
}
