package auth

import (
	"errors"
	"fmt"

	kjson "sigs.k8s.io/json"
	"sigs.k8s.io/yaml"
)

const (
	// APIVersion is that of the files.
	APIVersion = "config.windlass.dev/v1alpha1"
	// KindPolicy is the kind of a policy file.
	KindPolicy = "GatewayPolicy"
	// KindKeys is the kind of a file of API keys.
	KindKeys = "APIKeys"
)

// header begins each file.
type header struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
}

// decode reads a file of a kind. unknown are the fields that this release does not
// know; the others are read all the same.
func decode(document []byte, kind string, into any) (unknown []string, _ error) {
	text, err := yaml.YAMLToJSONStrict(document)
	if err != nil {
		return nil, err
	}
	var h header
	if err := kjson.UnmarshalCaseSensitivePreserveInts(text, &h); err != nil {
		return nil, err
	}
	if want := (header{APIVersion, kind}); h != want {
		return nil, fmt.Errorf("apiVersion %q and kind %q are not what this release reads: write apiVersion: %s and kind: %s",
			h.APIVersion, h.Kind, want.APIVersion, want.Kind)
	}
	fields, err := kjson.UnmarshalStrict(text, into, kjson.DisallowUnknownFields)
	for _, field := range fields {
		unknown = append(unknown, field.Error())
	}
	return unknown, err
}

// unknownError is the error about unknown fields and values; nil if there are none.
func unknownError(unknown []string) error {
	errs := make([]error, 0, len(unknown))
	for _, each := range unknown {
		errs = append(errs, errors.New(each))
	}
	return errors.Join(errs...)
}
