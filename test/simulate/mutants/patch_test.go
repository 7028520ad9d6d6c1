package main

import (
	"go/format"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// root is the module's folder.
const root = "../../.."

func TestEveryPatchAppliesToTheProduct(t *testing.T) {
	mutants, err := readPatches("patches")
	if err != nil {
		t.Fatal(err)
	}
	if len(mutants) < 25 {
		t.Errorf("there are %d mutants; at least 25 are promised", len(mutants))
	}
	changes := make(map[string]string)
	for _, p := range mutants {
		files, err := p.apply(root)
		if err != nil {
			t.Error(err)
			continue
		}
		whole := ""
		for file, text := range files {
			if _, err := parser.ParseFile(token.NewFileSet(), file, text, parser.SkipObjectResolution); err != nil {
				t.Errorf("mutant %s: %v", p.name, err)
			} else if formatted, err := format.Source([]byte(text)); err != nil || string(formatted) != text {
				t.Errorf("mutant %s: %s is not formatted as usual", p.name, file)
			}
			whole += text
		}
		if other, known := changes[whole]; known {
			t.Errorf("mutants %s and %s are one", p.name, other)
		}
		changes[whole] = p.name
	}
}

func TestAPatchSaysWhatItBreaksAndChangesTheProduct(t *testing.T) {
	for name, text := range map[string]string{
		"no rule named":     "# A promise.\npkg/queue/queue.go\n-a\n+b\n",
		"nothing said":      "= a rule\npkg/queue/queue.go\n-a\n+b\n",
		"nothing changed":   "# A promise.\n= a rule\n",
		"no line changed":   "# A promise.\n= a rule\npkg/queue/queue.go\n a\n",
		"no line named":     "# A promise.\n= a rule\npkg/queue/queue.go\n+a\n",
		"no file":           "# A promise.\n= a rule\n-a\n+b\n",
		"the simulator":     "# A promise.\n= a rule\ntest/simulate/sim/rule.go\n-a\n+b\n",
		"a test":            "# A promise.\n= a rule\npkg/queue/queue_test.go\n-a\n+b\n",
		"outside of pkg":    "# A promise.\n= a rule\n../pkg/queue/queue.go\n-a\n+b\n",
		"one of two places": "# A promise.\n= a rule\npkg/queue/queue.go\n-a\n+b\npkg/queue/adaptive_lifo.go\n",
	} {
		if _, err := parsePatch("bad", text); err == nil {
			t.Errorf("%s: the patch is accepted", name)
		}
	}
}

func TestAPatchChangesOnlyWhatIsThereOnce(t *testing.T) {
	dir := t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, "pkg"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "pkg", "a.go"), []byte("one\n\ttwo\nthree\n\ttwo\ntwo and more\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	apply := func(change string) (string, error) {
		p, err := parsePatch("mutant", "# A promise.\n= a rule\npkg/a.go\n"+change)
		if err != nil {
			t.Fatal(err)
		}
		files, err := p.apply(dir)
		return files["pkg/a.go"], err
	}
	for _, gone := range []string{"-four\n", "-\ttwo\n", "-two\n", "-one\n-three\n"} {
		if _, err := apply(gone); err == nil || !strings.Contains(err.Error(), "must have once") {
			t.Errorf("the lines %q are not there once, but: %v", gone, err)
		}
	}
	got, err := apply(" one\n-\ttwo\n+\tanother\n+\tand one more\n three\npkg/a.go\n-two and more\n")
	if want := "one\n\tanother\n\tand one more\nthree\n\ttwo\n"; err != nil || got != want {
		t.Errorf("%q, error %v; want %q", got, err, want)
	}
}
