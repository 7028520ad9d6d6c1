package runtimes

import (
	"os"
	"path/filepath"
	"strings"

	"github.com/windlass-dev/windlass/api/v1alpha1"
)

var python313 = language{
	name:        v1alpha1.RuntimePython313,
	version:     "3.13",
	shims:       "python3",
	main:        "bootstrap.py",
	split:       splitPython,
	candidates:  func(module string) []string { return []string{module + ".py", module + "/__init__.py"} },
	inline:      func(module, source string) map[string]string { return map[string]string{module + ".py": source} },
	interpreter: pythonInterpreter,
	// Python takes what it compiled before for a source of the same size and second: of two
	// edits within one second, the second would not be seen.
	env: []string{"PYTHONDONTWRITEBYTECODE=1"},
}

// splitPython reads "pkg.module.function" and "pkg/module.function" alike: the
// last dot parts module and function.
func splitPython(handler string) (module string, err error) {
	name := ""
	if dot := strings.LastIndex(handler, "."); dot >= 0 {
		module, name = strings.ReplaceAll(handler[:dot], ".", "/"), handler[dot+1:]
	}
	return module, localModule(handler, module, name)
}

// pythonInterpreter prefers the code's own virtual environment, which holds
// its dependencies.
func pythonInterpreter(dir string) (string, error) {
	if dir == "" {
		return lookPath("python3", "install Python 3.9 or later (for example: apt install python3)")
	}
	venv := filepath.Join(dir, ".venv", "bin", "python3")
	if _, err := os.Stat(venv); err == nil {
		return venv, nil
	}
	return lookPath("python3", "install Python 3.9 or later (for example: apt install python3), or make a virtual environment .venv in "+dir)
}
