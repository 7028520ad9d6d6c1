package v1alpha1

import (
	"bytes"
	"encoding/json"
	"fmt"
	"reflect"

	kubejson "sigs.k8s.io/json"
	"sigs.k8s.io/yaml"
)

// Encode writes a Function as YAML that Decode reads back as the same Function.
// Fields that are zero are left out. It fails only for times that cannot be
// written.
func Encode(f *Function) ([]byte, error) {
	f = f.DeepCopy()
	orElse(&f.APIVersion, APIVersion)
	orElse(&f.Kind, KindFunction)
	text, err := encode(f)
	if err != nil {
		return nil, fmt.Errorf("cannot write function %s: %w", f.Key(), err)
	}
	return text, nil
}

// EncodeHistory writes a Function and its revisions as YAML that DecodeHistory reads
// back, each as a document of its own.
func EncodeHistory(f *Function, revisions []*FunctionRevision) ([]byte, error) {
	text, err := Encode(f)
	if err != nil {
		return nil, err
	}
	for _, r := range revisions {
		r = r.DeepCopy()
		r.APIVersion, r.Kind = APIVersion, KindFunctionRevision
		document, err := encode(r)
		if err != nil {
			return nil, fmt.Errorf("cannot write the revision %s: %w", r.Name, err)
		}
		marker := "---\n"
		if document[0] == '{' {
			// What begins with the other one is read as YAML.
			marker = "...\n"
		}
		text = append(append(text, marker...), document...)
	}
	return text, nil
}

// encode writes an object of Kubernetes as YAML, if that can hold it.
func encode(object any) ([]byte, error) {
	asJSON, err := json.Marshal(object)
	if err != nil {
		return nil, err
	}
	asYAML, err := yaml.JSONToYAML(asJSON)
	if err == nil && readsAs(asYAML, asJSON) {
		return asYAML, nil
	}
	// YAML cannot hold some control characters and line ends as they are.
	// JSON can, and is a manifest as well.
	var indented bytes.Buffer
	if err := json.Indent(&indented, asJSON, "", "  "); err != nil {
		return nil, err
	}
	indented.WriteByte('\n')
	return indented.Bytes(), nil
}

func readsAs(asYAML, asJSON []byte) bool {
	back, err := yaml.YAMLToJSONStrict(asYAML)
	if err != nil {
		return false
	}
	var got, want any
	if kubejson.UnmarshalCaseSensitivePreserveInts(back, &got) != nil ||
		kubejson.UnmarshalCaseSensitivePreserveInts(asJSON, &want) != nil {
		return false
	}
	return reflect.DeepEqual(got, want)
}
