package invocation

import (
	"fmt"
	"strings"
)

// FunctionKey names a function as people do.
type FunctionKey struct {
	Namespace string
	Name      string
}

// String is namespace/name.
func (k FunctionKey) String() string { return k.Namespace + "/" + k.Name }

// MarshalText is String.
func (k FunctionKey) MarshalText() ([]byte, error) { return []byte(k.String()), nil }

// UnmarshalText reads what String wrote.
func (k *FunctionKey) UnmarshalText(text []byte) error {
	namespace, name, found := strings.Cut(string(text), "/")
	if !found {
		return fmt.Errorf("%q is no namespace/name", text)
	}
	*k = FunctionKey{Namespace: namespace, Name: name}
	return nil
}

// Compare orders keys by namespace, then by name.
func (k FunctionKey) Compare(other FunctionKey) int {
	if c := strings.Compare(k.Namespace, other.Namespace); c != 0 {
		return c
	}
	return strings.Compare(k.Name, other.Name)
}

// ResourceAttributes is the value of OTEL_RESOURCE_ATTRIBUTES, with which the OpenTelemetry
// SDK of an instance describes itself in the same terms as the spans of gateways. No value has
// characters that would need escaping.
func ResourceAttributes(of FunctionKey, revision string, cid CID) string {
	return "faas.name=" + of.Name + ",faas.version=" + revision + ",faas.instance=" + string(cid) +
		",k8s.namespace.name=" + of.Namespace
}
