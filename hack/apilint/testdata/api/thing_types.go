// Package api has a type with mistakes for the tests of apilint.
package api

// Thing is a thing.
type Thing struct {
	// colour of the thing, at most 8 bytes.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=8
	Unmarked string `json:"colour,omitempty"`
	// big tells whether it is.
	// +optional
	Big bool `json:"big,omitempty"`
}
