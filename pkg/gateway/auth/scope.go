package auth

import (
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/windlass-dev/windlass/pkg/invocation"
)

// everything is the entry of a scope that permits all functions.
const everything = "*"

// Scope is what a caller may call: namespaces, functions as NAMESPACE/NAME, or *
// for everything.
type Scope []string

// Permits tells whether a function may be called.
func (s Scope) Permits(key invocation.FunctionKey) bool {
	for _, entry := range s {
		if entry == everything || entry == key.Namespace || entry == key.String() {
			return true
		}
	}
	return false
}

// validate says what is wrong with a scope that people wrote.
func (s Scope) validate(field string) error {
	if len(s) == 0 {
		return fmt.Errorf("%s is empty: list namespaces, functions as NAMESPACE/NAME, or *", field)
	}
	for i, entry := range s {
		if entry == everything {
			continue
		}
		namespace, name, named := strings.Cut(entry, "/")
		if len(validation.IsDNS1123Label(namespace)) > 0 || (named && len(validation.IsDNS1123Label(name)) > 0) {
			return fmt.Errorf("%s[%d] %q is neither a namespace nor NAMESPACE/NAME nor *", field, i, entry)
		}
	}
	return nil
}
