package invocation

import "strings"

// Field is a header or a trailer.
type Field struct{ Name, Value string }

// Fields are headers or trailers, in the order of their message. Names may be in any case: those
// that differ in it only are equal.
type Fields []Field

// Get is the value of the first field of a name; empty if there is none.
func (f Fields) Get(name string) string {
	for i := range f {
		if strings.EqualFold(f[i].Name, name) {
			return f[i].Value
		}
	}
	return ""
}
