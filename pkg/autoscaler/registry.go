package autoscaler

import "strings"

// Algorithm is a decider that Functions and flags can name.
type Algorithm struct {
	Name string
	// About describes it in one line for people who choose.
	About  string
	Decide Decider
}

// algorithms lists all deciders, the default first. A new one is a file of its own and a line
// here; then "make generate" writes its name into API, chart and docs.
var algorithms = []Algorithm{
	horizon,
	fpcsch,
	openwhisk,
}

// All are the deciders, the default first.
func All() []Algorithm { return append([]Algorithm(nil), algorithms...) }

// Default is the name of the decider of functions that name none.
func Default() string { return algorithms[0].Name }

// ByName returns the decider of that name.
func ByName(name string) (Decider, bool) {
	for _, a := range algorithms {
		if a.Name == name {
			return a.Decide, true
		}
	}
	return nil, false
}

// Names returns the names of all deciders, the default first.
func Names() []string {
	names := make([]string, len(algorithms))
	for i, a := range algorithms {
		names[i] = a.Name
	}
	return names
}

// Choice lists the names in a sentence: a, b or c.
func Choice() string {
	names := Names()
	last := len(names) - 1
	return strings.Join(names[:last], ", ") + " or " + names[last]
}
