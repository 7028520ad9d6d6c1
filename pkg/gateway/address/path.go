package address

import (
	"strings"

	"github.com/windlass-dev/windlass/api/v1alpha1"
	"github.com/windlass-dev/windlass/pkg/invocation"
)

// functions is what the paths of all functions begin with.
const functions = "/function/"

// Path is the path of a function on the origin that functions share:
// /function/NAME.NAMESPACE, and /function/NAME in the namespace default.
func Path(key invocation.FunctionKey) string {
	if key.Namespace == v1alpha1.DefaultNamespace {
		return functions + key.Name
	}
	return functions + key.Name + "." + key.Namespace
}

// OfPath is the function that a path names, and what of the path is the function's own: empty,
// or with a slash in front. Neither names nor namespaces have dots, so a path names
// one function at most. It is not known for a path that is none of a function.
func OfPath(path string) (key invocation.FunctionKey, rest string, known bool) {
	path, found := strings.CutPrefix(path, functions)
	if !found {
		return key, "", false
	}
	named := path
	if slash := strings.IndexByte(path, '/'); slash >= 0 {
		named, rest = path[:slash], path[slash:]
	}
	name, namespace, told := strings.Cut(named, ".")
	if !told {
		namespace = v1alpha1.DefaultNamespace
	}
	if name == "" || namespace == "" || strings.Contains(namespace, ".") {
		return key, "", false
	}
	return invocation.FunctionKey{Namespace: namespace, Name: name}, rest, true
}
