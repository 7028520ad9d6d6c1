package runtimes

import (
	"regexp"
	"strings"
)

var nodejs = language{
	shims: "nodejs",
	main:  "bootstrap.mjs",
	split: splitNode,
	candidates: func(module string) []string {
		return []string{module + ".js", module + ".mjs", module + ".cjs"}
	},
	inlineFile: func(module, source string) string { return module + inlineExtension(source) },
	interpreter: func(string) (string, error) {
		return lookPath("node", "install Node.js 18 or later (for example: apt install nodejs)")
	},
	target: func(_, file string) string { return file },
}

// splitNode reads "dir/module.name" and "dir/module.object.name": the first
// dot behind the last slash parts module and name.
func splitNode(handler string) (module, name string, err error) {
	base := strings.LastIndex(handler, "/") + 1
	if dot := strings.Index(handler[base:], "."); dot >= 0 {
		module, name = handler[:base+dot], handler[base+dot+1:]
	}
	return module, name, localModule(handler, module, name)
}

// moduleSyntax matches statements that only an ES module may hold. A call
// import(...) is allowed in CommonJS too.
var moduleSyntax = regexp.MustCompile(`(?m)^\s*(?:export(?:\s+\w|\s*[{*])|import(?:\s+\w|\s*[{*"']))`)

// inlineExtension is the file extension that tells Node.js which kind of
// module an inline source is, as inline code has no package.json to say so.
func inlineExtension(source string) string {
	if moduleSyntax.MatchString(source) {
		return ".mjs"
	}
	return ".cjs"
}
