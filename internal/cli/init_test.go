package cli

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestInitMakesFunctionsThatAreValid(t *testing.T) {
	for _, kind := range kinds {
		t.Run(kind, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "My First_Function")
			quiet(t).run(t, "init", "--runtime", kind, dir).expect(t, exitOK, "out", "created "+filepath.Join(dir, "function.yaml"),
				"windlass deploy -f '"+filepath.Join(dir, "function.yaml")+"'\n", "windlass invoke my-first-function -f '"+filepath.Join(dir, "event.json")+"'\n")
			manifests, err := readManifests([]string{dir}, nil)
			if err != nil || len(manifests) != 1 || manifests[0].function.Name != "my-first-function" {
				t.Fatalf("%v: %+v", err, manifests)
			}
			if err := checkLocal(manifests); err != nil {
				t.Error(err)
			}
			// What must be built by hand before would run as it was after an edit.
			if command := manifests[0].function.Spec.Template.Command; len(command) > 0 && strings.Contains(command[0], "/") {
				if _, err := os.Stat(filepath.Join(dir, command[0])); err != nil {
					t.Errorf("the program is missing: %v", err)
				}
			}
			event, err := os.ReadFile(filepath.Join(dir, "event.json"))
			if err != nil || !json.Valid(event) {
				t.Errorf("the event is %q, %v", event, err)
			}
			readme, err := os.ReadFile(filepath.Join(dir, "README.md"))
			if err != nil || !strings.HasPrefix(string(readme), "# my-first-function\n") {
				t.Errorf("the README is %q, %v", readme, err)
			}
		})
	}
}

func TestInitQuotesNamesThatYAMLReadsAsSomethingElse(t *testing.T) {
	for _, kind := range kinds {
		for _, name := range []string{"2024", "on", "null", "1e3"} {
			dir := filepath.Join(t.TempDir(), name)
			quiet(t).run(t, "init", "--runtime", kind, dir).expect(t, exitOK, "out")
			if manifests, err := readManifests([]string{dir}, nil); err != nil || manifests[0].function.Name != name {
				t.Errorf("%s of %s: %+v, %v", name, kind, manifests, err)
			}
		}
	}
}

func TestInitChangesNothingThatIsThere(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "handler.py")
	if err := os.WriteFile(path, []byte("mine"), 0o600); err != nil {
		t.Fatal(err)
	}
	quiet(t).run(t, "init", "--name", "x", dir).expect(t, exitUsage, "err", path+" is there already")
	left, err := os.ReadDir(dir)
	if text, readErr := os.ReadFile(path); err != nil || readErr != nil || len(left) != 1 || string(text) != "mine" {
		t.Errorf("the folder has %v, and the file %q", left, text)
	}
	below := filepath.Join(path, "below")
	got := quiet(t).run(t, "init", below)
	got.expect(t, exitUsage, "err", "cannot create the folder", "not a directory", "choose another")
	if strings.Contains(got.err, "already") {
		t.Errorf("a folder below a file: %s", got.err)
	}
	quiet(t).run(t, "init", "--runtime", "cobol", dir).expect(t, exitUsage, "err", `--runtime "cobol" is not known; write python3.13, nodejs22.x, command`)
	quiet(t).run(t, "init", "--name", "X", filepath.Join(dir, "y")).expect(t, exitUsage, "err", `"X" is not a name of a function`)
	quiet(t).run(t, "init").expect(t, exitUsage, "err", "write the one FOLDER")
}

func TestInitWritesAllFilesOrNone(t *testing.T) {
	dir := t.TempDir()
	// The second file cannot be written.
	err := writeNew(dir, []scaffolded{{"function.yaml", []byte("text")}, {filepath.Join("missing", "handler.py"), []byte("text")}})
	if err == nil || !strings.Contains(err.Error(), "cannot create the function") || !strings.Contains(err.Error(), "choose another") {
		t.Errorf("got %v", err)
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
		t.Errorf("it left %v, %v", left, err)
	}
}
