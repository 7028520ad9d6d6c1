package cli

import (
	"cmp"
	"errors"
	"fmt"
	"strings"

	"github.com/windlass-dev/windlass/pkg/provisioner/process/secretfile"
)

// localOnlyFlag refuses a flag that has an effect on this machine only.
func (t *target) localOnlyFlag(flag string, given bool) error {
	if !given || !t.inCluster() {
		return nil
	}
	return usagef("--%s is for a Windlass on this machine, and this is a cluster; make a Secret there, for example with kubectl create secret generic NAME --from-env-file=FILE", flag)
}

// readSecrets reads the values of flags NAME=FILE, by name.
func readSecrets(flags []string) (map[string]map[string]string, error) {
	secrets := map[string]map[string]string{}
	for _, flag := range flags {
		name, path, ok := strings.Cut(flag, "=")
		if !ok || name == "" || path == "" {
			return nil, usagef("--secret %q is not NAME=FILE; write for example --secret db=db.env", flag)
		}
		variables, err := readEnvFiles("--secret", []string{path})
		if err != nil {
			return nil, err
		}
		values := map[string]string{}
		for _, v := range variables {
			values[v.name] = v.value
		}
		secrets[name] = values
	}
	return secrets, nil
}

// checkSecrets says which secret or key a function needs that neither the flags give nor
// was given before.
func (d *deployer) checkSecrets(t *target, secrets map[string]map[string]string, manifests []manifest) error {
	dataDir, err := d.resolveDataDir()
	if err != nil {
		return err
	}
	var problems []error
	for _, m := range manifests {
		fn := m.function.DeepCopy()
		fn.Namespace = cmp.Or(fn.Namespace, t.namespace)
		if err := secretfile.Check(dataDir, fn, secrets); err != nil {
			problems = append(problems, fmt.Errorf("function %s: %w", fn.Key(), err))
		}
	}
	if len(problems) > 0 {
		return inputError(errors.Join(problems...))
	}
	return nil
}

// storeSecrets stores secrets for the namespaces of the functions.
func (d *deployer) storeSecrets(t *target, secrets map[string]map[string]string, manifests []manifest) error {
	dataDir, err := d.resolveDataDir()
	if err != nil {
		return err
	}
	for _, m := range manifests {
		for name, values := range secrets {
			if err := secretfile.Write(dataDir, cmp.Or(m.function.Namespace, t.namespace), name, values); err != nil {
				return inputError(fmt.Errorf("cannot keep the secret %s: %w", name, err))
			}
		}
	}
	return nil
}
