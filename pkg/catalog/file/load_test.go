package file

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestOpenNamesEveryFileThatItCannotLoad(t *testing.T) {
	const header = "apiVersion: windlass.dev/v1alpha1\nkind: Function\n"
	const identity = "namespace: default, uid: u, generation: 1"
	for name, c := range map[string]struct {
		path, text string
		want       []string
	}{
		"no YAML": {"default/f.yaml", "a: b: c",
			[]string{"f.yaml:1: is not valid YAML", "correct this file, or remove it"}},
		"nothing": {"default/f.yaml", "",
			[]string{"f.yaml: is empty", "correct this file, or remove it"}},
		"an unknown field": {"default/f.yaml", header + "metadata: {name: f, " + identity + "}\nspec: {template: {comand: [x]}}",
			[]string{"f.yaml:4: spec.template.comand: unknown field; did you mean command?"}},
		"two functions": {"default/f.yaml", header + "---\n" + header,
			[]string{"holds 2 functions, not one"}},
		"another name": {"default/f.yaml", header + "metadata: {name: g, " + identity + "}\nspec: {template: {command: [x]}}",
			[]string{"holds function default/g, not default/f"}},
		"no identity": {"default/f.yaml", header + "metadata: {name: f, namespace: default}\nspec: {template: {command: [x]}}",
			[]string{"has no metadata.uid", "apply the function again"}},
		"a function that is not valid": {"default/f.yaml", header + "metadata: {name: f, " + identity + "}\nspec: {template: {command: [x], concurrency: -1, timeout: 1ms}}",
			[]string{"f.yaml: spec.template.concurrency: Invalid value: -1: must be 1 to 1000", "f.yaml: spec.template.timeout: Invalid value", "correct this file"}},
		"a function for a cluster": {"default/f.yaml", header + "metadata: {name: f, " + identity + "}\nspec: {template: {image: x}}",
			[]string{"f.yaml: spec.template.image: Invalid value", "needs a cluster"}},
		"a name that is not valid": {"default/F_1.yaml", header + "metadata: {name: F_1, " + identity + "}\nspec: {template: {command: [x]}}",
			[]string{`F_1.yaml: metadata.name: Invalid value: "F_1"`, "f-1"}},
		"a folder instead of a file":  {"default/f.yaml/x", "", []string{"f.yaml: is a directory", "see to the rights of the file, or remove it"}},
		"a file of another kind":      {"default/f.yml", "", []string{"f.yml: is not a function, whose file ends with .yaml; move it out of"}},
		"a file beside the folders":   {"f.yaml", "", []string{"f.yaml: is not the folder of a namespace; move it out of"}},
		"a file of another, with bad": {"default/f.json", "", []string{"f.json", "bad.yaml: is empty"}},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			put := func(path, text string) {
				full := filepath.Join(dir, filepath.FromSlash(path))
				if err := os.MkdirAll(filepath.Dir(full), 0o700); err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(full, []byte(text), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			put(c.path, c.text)
			put("other/bad.yaml", "")
			_, err := Open(dir)
			if err == nil {
				t.Fatal("want an error")
			}
			for _, want := range append(c.want, dir, "bad.yaml: is empty") {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("error lacks %q:\n%v", want, err)
				}
			}
		})
	}
}

func TestOpenSaysThatItsFolderCannotBe(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(file); err == nil || !strings.Contains(err.Error(), file) || !strings.Contains(err.Error(), "choose another") {
		t.Errorf("got %v", err)
	}
}
