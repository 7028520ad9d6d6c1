package secretfile

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/windlass-dev/windlass/api/v1alpha1"
)

func TestSecretsBecomeVariables(t *testing.T) {
	dir := t.TempDir()
	for name, values := range map[string]map[string]string{"db": {"USER": "ada", "PASSWORD": "a=b"}, "more.settings": {"LEVEL": "3"}} {
		if err := Write(dir, "team", name, values); err != nil {
			t.Fatal(err)
		}
	}
	fn := &v1alpha1.Function{}
	fn.Namespace = "team"
	fn.Spec.Template.EnvFrom = []v1alpha1.EnvFromSource{
		{SecretRef: &v1alpha1.EnvFromReference{Name: "db"}},
		{ConfigMapRef: &v1alpha1.EnvFromReference{Name: "more.settings"}, Prefix: "LOG_"},
	}
	got, err := Environ(dir, fn)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"PASSWORD=a=b", "USER=ada", "LOG_LEVEL=3"}, got); diff != "" {
		t.Error(diff)
	}
	fn.Namespace = "other"
	if _, err := Environ(dir, fn); err == nil || !strings.Contains(err.Error(), "spec.template.envFrom[0]: there is no secret db in the namespace other: give it with windlass deploy --secret db=FILE") {
		t.Errorf("of another namespace: %v", err)
	}
}

func TestAVariableTakesOneKeyOfASecret(t *testing.T) {
	dir := t.TempDir()
	if err := Write(dir, "team", "db", map[string]string{"password": "a=b"}); err != nil {
		t.Fatal(err)
	}
	const giveIt = "give it with windlass deploy --secret other=FILE"
	for name, c := range map[string]struct {
		secret, key string
		optional    bool
		want, err   string
	}{
		"there":             {"db", "password", false, "a=b", ""},
		"no key":            {"db", "user", false, "", "spec.template.env[1].valueFrom: the secret db has no key user: add it to FILE, and give it again with windlass deploy --secret db=FILE"},
		"a key that may be": {"db", "user", true, "", ""},
		"no secret":         {"other", "user", false, "", "spec.template.env[1].valueFrom: there is no secret other in the namespace team: " + giveIt},
		"one that may be":   {"other", "user", true, "", ""},
	} {
		for kind, source := range map[string]*v1alpha1.EnvVarSource{
			"Secret":    {SecretKeyRef: &v1alpha1.KeyReference{Name: c.secret, Key: c.key, Optional: c.optional}},
			"ConfigMap": {ConfigMapKeyRef: &v1alpha1.KeyReference{Name: c.secret, Key: c.key, Optional: c.optional}},
		} {
			fn := &v1alpha1.Function{}
			fn.Namespace = "team"
			fn.Spec.Template.Env = []v1alpha1.EnvVar{{Name: "A", Value: "x"}, {Name: "B", ValueFrom: source}}
			got, err := Keys(dir, fn)
			if said := fmt.Sprint(err); err != nil && said != c.err || err == nil && c.err != "" || got["B"] != c.want {
				t.Errorf("%s, %s: %v, %v", name, kind, got, err)
			}
		}
	}
	fn := &v1alpha1.Function{}
	fn.Namespace = "team"
	fn.Spec.Template.EnvFrom = []v1alpha1.EnvFromSource{{SecretRef: &v1alpha1.EnvFromReference{Name: "other", Optional: true}}}
	if env, err := Environ(dir, fn); err != nil || len(env) > 0 {
		t.Errorf("of a secret that may be missing: %v, %v", env, err)
	}
}

func TestOnlyTheOwnerReadsASecret(t *testing.T) {
	dir := t.TempDir()
	for range 2 {
		if err := Write(dir, "team", "db", map[string]string{"A": "1"}); err != nil {
			t.Fatal(err)
		}
	}
	err := filepath.WalkDir(filepath.Join(dir, "secrets"), func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := os.Stat(path)
		if err == nil && info.Mode().Perm()&0o077 != 0 {
			t.Errorf("%s has the mode %s", path, info.Mode())
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range [][2]string{{"..", "db"}, {"team", "../db"}, {"team", ""}, {"", "db"}, {"team", "A"}} {
		if err := Write(dir, c[0], c[1], nil); err == nil {
			t.Errorf("%q, %q is taken for a name", c[0], c[1])
		}
	}
}
