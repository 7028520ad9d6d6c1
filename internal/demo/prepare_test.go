package demo

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// prepare runs hack/examples.sh on a machine whose Go works and whose pip and npm reach nothing.
func prepare(t *testing.T, ci string) (root, output string, err error) {
	t.Helper()
	script, err := os.ReadFile("../../hack/examples.sh")
	if err != nil {
		t.Fatal(err)
	}
	root = t.TempDir()
	const offline = "#!/bin/sh\necho 'no route to host' >&2\nexit 1\n"
	for name, text := range map[string]string{
		"hack/examples.sh":                    string(script),
		"examples/thumbnail/requirements.txt": "pillow",
		"examples/markdown/package-lock.json": "{}",
		"bin/go":                              "#!/bin/sh\n",
		"bin/node":                            "#!/bin/sh\n",
		"bin/npm":                             "#!/bin/sh\nmkdir -p examples/markdown/node_modules\nexit 1\n",
		"pip":                                 offline,
		// It makes a virtual environment whose pip fails.
		"bin/python3": "#!/bin/sh\n[ \"$1\" = -m ] || exit 0\nmkdir -p examples/thumbnail/.venv/bin\ncp pip examples/thumbnail/.venv/bin/python3\n",
	} {
		path := filepath.Join(root, filepath.FromSlash(name))
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, []byte(text), 0o700)); err != nil {
			t.Fatal(err)
		}
	}
	cmd := exec.CommandContext(t.Context(), filepath.Join(root, "hack", "examples.sh"))
	cmd.Env = []string{"PATH=" + filepath.Join(root, "bin") + ":/usr/bin:/bin", "CI=" + ci}
	text, err := cmd.CombinedOutput()
	return root, string(text), err
}

func TestExamplesWithoutTheirDependenciesAreLeftOut(t *testing.T) {
	if _, err := exec.LookPath("bash"); err != nil {
		t.Skip("needs bash")
	}
	root, output, err := prepare(t, "")
	if err != nil {
		t.Errorf("make run would not start: %v", err)
	}
	for _, want := range []string{"thumbnail", "markdown", "left out: its dependencies cannot be installed", "no route to host", "built bin/examples/fib"} {
		if !strings.Contains(output, want) {
			t.Errorf("the output lacks %q", want)
		}
	}
	for _, half := range []string{"thumbnail/.venv", "markdown/node_modules"} {
		if _, err := os.Stat(filepath.Join(root, "examples", half)); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("%s stays half installed: %v", half, err)
		}
	}
	if t.Failed() {
		t.Log(output)
	}
	if _, output, err = prepare(t, "true"); err == nil {
		t.Errorf("CI goes on without the dependencies:\n%s", output)
	}
}
