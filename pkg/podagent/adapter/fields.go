package adapter

import (
	"maps"
	"net/http"
	"slices"

	"github.com/windlass-dev/windlass/pkg/invocation"
)

// FieldsOf are the fields of h, sorted by their names.
func FieldsOf(h http.Header) invocation.Fields {
	fields := make(invocation.Fields, 0, len(h))
	for _, name := range slices.Sorted(maps.Keys(h)) {
		for _, value := range h[name] {
			fields = append(fields, invocation.Field{Name: name, Value: value})
		}
	}
	return fields
}

// HeaderOf has fields by their canonical names.
func HeaderOf(fields invocation.Fields) http.Header {
	h := make(http.Header, len(fields))
	for _, f := range fields {
		h.Add(f.Name, f.Value)
	}
	return h
}
