package runtimes

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/windlass-dev/windlass/api/v1alpha1"
)

func TestAnotherVersionOnThisMachineIsTold(t *testing.T) {
	for name, c := range map[string]struct {
		runtime v1alpha1.RuntimeName
		says    string
		differs string
	}{
		"the version, with its patch":         {v1alpha1.RuntimePython313, "echo Python 3.13.1", ""},
		"the version alone":                   {v1alpha1.RuntimePython313, "echo Python 3.13", ""},
		"an older one":                        {v1alpha1.RuntimePython313, "echo Python 3.11.7", "its version is 3.11.7: a cluster runs them with 3.13"},
		"one that begins with its numbers":    {v1alpha1.RuntimePython313, "echo Python 3.130.1", "3.130.1"},
		"Node.js":                             {v1alpha1.RuntimeNodeJS22, "echo v22.9.0", ""},
		"Node.js of another version":          {v1alpha1.RuntimeNodeJS22, "echo v20.20.2", "its version is 20.20.2: a cluster runs them with 22"},
		"a program that tells none":           {v1alpha1.RuntimePython313, "echo hello", ""},
		"a program that fails":                {v1alpha1.RuntimePython313, "echo Python 3.11; exit 1", ""},
		"a runtime that is not brought along": {"ruby3.4", "echo 3.3", ""},
	} {
		t.Run(name, func(t *testing.T) {
			program := filepath.Join(t.TempDir(), "interpreter")
			write(t, program, "#!/bin/sh\n"+c.says+"\n", 0o755)
			got := Difference(t.Context(), c.runtime, program)
			if (got == "") != (c.differs == "") || !strings.Contains(got, c.differs) {
				t.Errorf("got %q, want %q", got, c.differs)
			}
		})
	}
}

func TestTheInterpreterIsThatOfTheCode(t *testing.T) {
	bin, code := onPath(t, "python3"), t.TempDir()
	for dir, want := range map[string]string{"": filepath.Join(bin, "python3"), code: filepath.Join(bin, "python3")} {
		if got, err := Interpreter(v1alpha1.RuntimePython313, dir); err != nil || got != want {
			t.Errorf("in %q: %q, %v", dir, got, err)
		}
	}
	venv := filepath.Join(code, ".venv", "bin", "python3")
	write(t, venv, "", 0o755)
	if got, err := Interpreter(v1alpha1.RuntimePython313, code); err != nil || got != venv {
		t.Errorf("with a virtual environment: %q, %v", got, err)
	}
	if _, err := Interpreter(v1alpha1.RuntimeNodeJS22, ""); err == nil || !strings.Contains(err.Error(), "install Node.js") {
		t.Errorf("without Node.js: %v", err)
	}
	if _, err := Interpreter("python3", ""); err == nil || !strings.Contains(err.Error(), "python3.13") {
		t.Errorf("an unknown runtime: %v", err)
	}
}
