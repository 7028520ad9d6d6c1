package wellknown

import "slices"

// AllNamespaces in a list of namespaces stands for every one.
const AllNamespaces = "*"

// Allows tells whether a right that an administrator gives to a list of namespaces is one of this namespace.
func Allows(list []string, namespace string) bool {
	return slices.Contains(list, namespace) || slices.Contains(list, AllNamespaces)
}
