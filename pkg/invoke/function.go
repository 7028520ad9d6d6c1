package invoke

import "strings"

// FunctionKey names a function as people do.
type FunctionKey struct {
	Namespace string
	Name      string
}

// String is namespace/name.
func (k FunctionKey) String() string { return k.Namespace + "/" + k.Name }

// Compare orders keys by namespace, then by name.
func (k FunctionKey) Compare(other FunctionKey) int {
	if c := strings.Compare(k.Namespace, other.Namespace); c != 0 {
		return c
	}
	return strings.Compare(k.Name, other.Name)
}
