package secretfile

import (
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
		{SecretRef: &v1alpha1.LocalReference{Name: "db"}},
		{ConfigMapRef: &v1alpha1.LocalReference{Name: "more.settings"}, Prefix: "LOG_"},
	}
	got, err := Environ(dir, fn)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"PASSWORD=a=b", "USER=ada", "LOG_LEVEL=3"}, got); diff != "" {
		t.Error(diff)
	}
	fn.Namespace = "other"
	if _, err := Environ(dir, fn); err == nil || !strings.Contains(err.Error(), "there is no secret db in the namespace other: give it with windlass deploy --secret db=FILE") {
		t.Errorf("of another namespace: %v", err)
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
