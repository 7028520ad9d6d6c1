package file

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/windlass-dev/windlass/api/v1alpha1"
)

func TestA1EditedCodeIsAChange(t *testing.T) {
	code := t.TempDir()
	put := func(name, text string, age time.Duration) {
		t.Helper()
		path := filepath.Join(code, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.Chtimes(path, time.Time{}, time.Unix(1_000_000, 0).Add(age)); err != nil {
			t.Fatal(err)
		}
	}
	put("app.py", "one", 0)
	put("bin/server", "one", 0)
	s := open(t, t.TempDir())
	f := function("edited")
	f.Spec.Template.Command = []string{"bin/server"}
	f.Spec.Template.Code = &v1alpha1.Code{Path: code}
	first := apply(t, s, f, Created)
	apply(t, s, f, Unchanged)

	for _, change := range []func(){
		func() { put("app.py", "two", time.Second) },
		func() { put("sub/new.py", "new", 0) },
		func() { put("bin/server", "two", time.Second) },
		func() { put("settings.yaml", "apiVersion: of.another/v1", 0) },
	} {
		change()
		changed := apply(t, s, f, Configured)
		if changed.Generation <= first.Generation {
			t.Errorf("generation %d after %d", changed.Generation, first.Generation)
		}
		if changed.Revision() == first.Revision() {
			t.Error("the revision is as it was, so instances with the old code stay")
		}
		first = changed
	}

	put("__pycache__/app.pyc", "compiled", 0)
	put(".venv/lib/dependency.py", "installed", 0)
	put(".app.py.swp", "open in vim", 0)
	put(".mypy_cache/app.json", "checked", 0)
	put("app.py~", "saved before", 0)
	put("function.yaml", "apiVersion: windlass.dev/v1alpha1\nkind: Function", 0)
	put("state/functions/default/f.yaml", "kept", 0)
	put("state/instances/0/file", "written", 0)
	put("state/instances.lock", "", 0)
	apply(t, s, f, Unchanged)
}

// codeBelow makes empty files below a folder, and returns which of at most most files are compared.
func codeBelow(t *testing.T, most int, names ...string) []string {
	t.Helper()
	root := t.TempDir()
	for _, name := range names {
		path := filepath.Join(root, filepath.FromSlash(name))
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, nil, 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	var got []string
	for _, f := range codeFiles(root, most) {
		name, err := filepath.Rel(root, f.path)
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, filepath.ToSlash(name))
	}
	return got
}

// A home folder has more files than are compared, and the first ones by name are those of caches.
func TestOfTooManyFilesThoseNextToTheRootAreCompared(t *testing.T) {
	got := codeBelow(t, 4, ".a/1", ".a/2", ".a/3", ".a/4", "a/a/1", "a/1", "a/2", "a/3", "a/4", "app.py", "lib.py")
	if want := []string{"a/1", "a/2", "app.py", "lib.py"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

// The stamps that are stored are digests of the files in this order.
func TestCodeFilesAreInTheOrderOfWalkDir(t *testing.T) {
	want := []string{"a.py", "lib/a.py", "lib/deep/b.py", "lib/z.py", "lib-x.py", "z.py"}
	if got := codeBelow(t, maxCodeFiles, want...); !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestOneFileOfAFolderIsAllTheCode(t *testing.T) {
	dir := t.TempDir()
	handler := filepath.Join(dir, "app.py")
	if err := os.WriteFile(handler, []byte("code"), 0o600); err != nil {
		t.Fatal(err)
	}
	s := open(t, t.TempDir())
	f := function("single")
	f.Spec.Template.Command, f.Spec.Template.RuntimeRef.Name, f.Spec.Template.Handler = nil, v1alpha1.RuntimePython313, "app.handler"
	f.Spec.Template.Code = &v1alpha1.Code{Path: handler}
	apply(t, s, f, Created)
	if err := os.WriteFile(filepath.Join(dir, "notes.txt"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	apply(t, s, f, Unchanged)
}

func TestCodeThatIsMissingIsRefused(t *testing.T) {
	s := open(t, t.TempDir())
	f := function("missing")
	f.Spec.Template.Code = &v1alpha1.Code{Path: "/no/such/folder"}
	_, err := s.Apply(f)
	var invalid *InvalidError
	if !errors.As(err, &invalid) || invalid.Problems[0].Field != "spec.template.code.path" {
		t.Errorf("applied: %v", err)
	}
}

func TestA1CodeBehindLinksIsLookedAt(t *testing.T) {
	dir := t.TempDir()
	code, target := filepath.Join(dir, "code"), filepath.Join(dir, "elsewhere.py")
	if err := os.Mkdir(code, 0o700); err != nil {
		t.Fatal(err)
	}
	for link, to := range map[string]string{"current": code, "code/app.py": target} {
		if err := os.Symlink(to, filepath.Join(dir, link)); err != nil {
			t.Fatal(err)
		}
	}
	write := func(text string) {
		t.Helper()
		if err := os.WriteFile(target, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("one")
	s := open(t, t.TempDir())
	f := function("linked")
	f.Spec.Template.Code = &v1alpha1.Code{Path: filepath.Join(dir, "current")}
	first := apply(t, s, f, Created)
	write("number two")
	if apply(t, s, f, Configured).Revision() == first.Revision() {
		t.Error("the revision is as it was")
	}
}
