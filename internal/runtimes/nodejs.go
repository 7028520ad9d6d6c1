package runtimes

import (
	"strings"

	"github.com/windlass-dev/windlass/api/v1alpha1"
)

var nodejs22 = language{
	name:    v1alpha1.RuntimeNodeJS22,
	version: "22",
	shims:   "nodejs",
	main:    "bootstrap.mjs",
	split:   splitNode,
	candidates: func(module string) []string {
		return []string{module + ".js", module + ".mjs", module + ".cjs"}
	},
	// The package.json says nothing, but keeps Node.js from looking for one
	// above the code's folder, which would say what kind of module this is.
	inline: func(module, source string) map[string]string {
		return map[string]string{module + ".js": source, "package.json": "{}\n"}
	},
	interpreter: func(string) (string, error) {
		return lookPath("node", "install Node.js 18 or later (for example: apt install nodejs)")
	},
}

// splitNode reads "dir/module.name" and "dir/module.object.name": the first
// dot behind the last slash parts module and name.
func splitNode(handler string) (module string, err error) {
	name := ""
	base := strings.LastIndex(handler, "/") + 1
	if dot := strings.Index(handler[base:], "."); dot >= 0 {
		module, name = handler[:base+dot], handler[base+dot+1:]
	}
	return module, localModule(handler, module, name)
}
