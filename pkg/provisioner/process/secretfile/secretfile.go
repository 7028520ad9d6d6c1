package secretfile

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/windlass-dev/windlass/api/v1alpha1"
)

// Write keeps a secret in the place of the one of that name.
func Write(dataDir, namespace, name string, values map[string]string) error {
	path, err := pathOf(dataDir, namespace, name)
	if err != nil {
		return err
	}
	text, err := json.Marshal(values)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	// Whoever reads sees the old one or the new one. CreateTemp lets nobody else read.
	next, err := os.CreateTemp(filepath.Dir(path), ".next-*")
	if err != nil {
		return err
	}
	defer os.Remove(next.Name())
	_, err = next.Write(text)
	if err := errors.Join(err, next.Close()); err != nil {
		return err
	}
	return os.Rename(next.Name(), path)
}

// Environ are the variables that a function takes from secrets, as KEY=VALUE. Of several
// for one name the last counts. Its error names a secret that is missing.
func Environ(dataDir string, fn *v1alpha1.Function) ([]string, error) {
	var env []string
	for _, from := range fn.Spec.Template.EnvFrom {
		ref := from.SecretRef
		if ref == nil {
			ref = from.ConfigMapRef
		}
		if ref == nil {
			continue
		}
		values, err := read(dataDir, fn.Namespace, ref.Name)
		if err != nil {
			return nil, err
		}
		var of []string
		for name, value := range values {
			of = append(of, from.Prefix+name+"="+value)
		}
		slices.Sort(of)
		env = append(env, of...)
	}
	return env, nil
}

func read(dataDir, namespace, name string) (map[string]string, error) {
	path, err := pathOf(dataDir, namespace, name)
	if err != nil {
		return nil, err
	}
	text, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("spec.template.envFrom: there is no secret %s in the namespace %s: give it with windlass deploy --secret %s=FILE", name, namespace, name)
	}
	var values map[string]string
	if err == nil {
		err = json.Unmarshal(text, &values)
	}
	if err != nil {
		return nil, fmt.Errorf("spec.template.envFrom: the secret %s cannot be read: %w: give it anew with windlass deploy --secret %s=FILE", name, err, name)
	}
	return values, nil
}

// pathOf is where a secret is kept. Its error is about the names.
func pathOf(dataDir, namespace, name string) (string, error) {
	if len(validation.IsDNS1123Label(namespace)) > 0 {
		return "", fmt.Errorf("%q is not a namespace: its name is made of lower-case letters, digits and hyphens", namespace)
	}
	if len(validation.IsDNS1123Subdomain(name)) > 0 {
		return "", fmt.Errorf("%q is not the name of a secret: it is made of lower-case letters, digits, hyphens and dots", name)
	}
	return filepath.Join(dataDir, "secrets", namespace, name+".json"), nil
}
