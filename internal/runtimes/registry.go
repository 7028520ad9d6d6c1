package runtimes

import (
	"strings"

	"github.com/windlass-dev/windlass/api/v1alpha1"
)

// language is the part that differs between the runtimes.
type language struct {
	name v1alpha1.RuntimeName
	// version is that of the interpreter in the image, as far as the name says it.
	version string
	// shims is the folder of the embedded programs; main is the one to run.
	shims, main string
	// split finds the module in a handler: its path below the code's folder,
	// without extension.
	split func(handler string) (module string, err error)
	// candidates are the files that can hold a module, best first.
	candidates func(module string) []string
	// inline are the files that inline source of a module becomes, by their
	// paths below the code's folder.
	inline func(module, source string) map[string]string
	// interpreter finds this machine's program for code in dir; empty for code that brings
	// none of its own.
	interpreter func(dir string) (string, error)
	// env are variables that the interpreter needs besides, as NAME=value.
	env []string
}

// languages are all that Windlass brings along, the default of "windlass init" first. A
// new one is a file of its own, its shims, its image (images/runtime-NAME and a line in
// images/build/recipes.go), and a line here; then run "make generate", which writes its
// name into API, CRD, chart and docs. Another version of a language is a new one that
// shares the shims.
var languages = []language{
	python313,
	nodejs22,
}

func languageOf(name v1alpha1.RuntimeName) (language, bool) {
	for _, l := range languages {
		if l.name == name {
			return l, true
		}
	}
	return language{}, false
}

// Names are the names of all built-in runtimes.
func Names() []string {
	names := make([]string, len(languages))
	for i, l := range languages {
		names[i] = string(l.name)
	}
	return names
}

// Choice lists the names in a sentence: a, b or c.
func Choice() string {
	names := Names()
	last := len(names) - 1
	return strings.Join(names[:last], ", ") + " or " + names[last]
}

// Candidates are the files that can hold a handler, best first, by their paths below the
// code's folder; the first is what inline code becomes. Of a runtime that Windlass does
// not bring along they are not known.
func Candidates(name v1alpha1.RuntimeName, handler string) (files []string, known bool) {
	l, known := languageOf(name)
	if !known {
		return nil, false
	}
	module, _ := l.split(handler) // whether it can be a handler is validated
	return l.candidates(module), true
}
