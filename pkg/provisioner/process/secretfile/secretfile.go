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
	// Readers see the old file or the new one. CreateTemp makes it readable only for its
	// owner.
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

// Environ are the variables that a function takes from secrets as a whole, as KEY=VALUE. Of
// several for one name the last counts. Its error names a secret that is missing.
func Environ(dataDir string, fn *v1alpha1.Function) ([]string, error) {
	return environ(stored(dataDir, fn.Namespace), fn)
}

// Keys are the values that single variables of a function take from secrets, by the
// variable's name. Its error names a secret or a key that is missing.
func Keys(dataDir string, fn *v1alpha1.Function) (map[string]string, error) {
	return keys(stored(dataDir, fn.Namespace), fn)
}

// Check returns an error about what Environ or Keys would lack once these secrets, by name,
// are added to the existing ones.
func Check(dataDir string, fn *v1alpha1.Function, coming map[string]map[string]string) error {
	there := stored(dataDir, fn.Namespace)
	both := func(name string) (map[string]string, error) {
		if values, comes := coming[name]; comes {
			return values, nil
		}
		return there(name)
	}
	_, envErr := environ(both, fn)
	_, keyErr := keys(both, fn)
	return errors.Join(envErr, keyErr)
}

// secrets finds the variables of a secret. Its error is fs.ErrNotExist if no secret has that
// name.
type secrets func(name string) (map[string]string, error)

func stored(dataDir, namespace string) secrets {
	return func(name string) (map[string]string, error) { return read(dataDir, namespace, name) }
}

func environ(find secrets, fn *v1alpha1.Function) ([]string, error) {
	var env []string
	for i, from := range fn.Spec.Template.EnvFrom {
		ref := from.SecretRef
		if ref == nil {
			ref = from.ConfigMapRef
		}
		if ref == nil {
			continue
		}
		values, err := find(ref.Name)
		if errors.Is(err, fs.ErrNotExist) && ref.Optional {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("spec.template.envFrom[%d]: %w", i, err)
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

func keys(find secrets, fn *v1alpha1.Function) (map[string]string, error) {
	keys := make(map[string]string)
	for i, v := range fn.Spec.Template.Env {
		if v.ValueFrom == nil {
			continue
		}
		ref := v.ValueFrom.SecretKeyRef
		if ref == nil {
			ref = v.ValueFrom.ConfigMapKeyRef
		}
		if ref == nil {
			continue
		}
		values, err := find(ref.Name)
		value, there := values[ref.Key]
		switch {
		case there:
			keys[v.Name] = value
		case ref.Optional && (err == nil || errors.Is(err, fs.ErrNotExist)):
		case err != nil:
			return nil, fmt.Errorf("spec.template.env[%d].valueFrom: %w", i, err)
		default:
			return nil, fmt.Errorf("spec.template.env[%d].valueFrom: the secret %s has no key %s: add it to FILE, and give it again with windlass deploy --secret %s=FILE",
				i, ref.Name, ref.Key, ref.Name)
		}
	}
	return keys, nil
}

// missing is a secret that does not exist.
type missing struct{ namespace, name string }

func (m missing) Error() string {
	return fmt.Sprintf("there is no secret %s in the namespace %s: give it with windlass deploy --secret %s=FILE", m.name, m.namespace, m.name)
}

func (m missing) Is(err error) bool { return err == fs.ErrNotExist }

// read returns the variables of a secret. Its error is fs.ErrNotExist if no secret has that
// name.
func read(dataDir, namespace, name string) (map[string]string, error) {
	path, err := pathOf(dataDir, namespace, name)
	if err != nil {
		return nil, err
	}
	text, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, missing{namespace, name}
	}
	var values map[string]string
	if err == nil {
		err = json.Unmarshal(text, &values)
	}
	if err != nil {
		return nil, fmt.Errorf("the secret %s cannot be read: %w: give it again with windlass deploy --secret %s=FILE", name, err, name)
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
