package main

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/windlass-dev/windlass/pkg/fpcs"
)

func TestWhatIsListedFollowsTheRegistries(t *testing.T) {
	checkout := os.DirFS("../..")
	files, err := render(checkout, lists{fpcs.All()})
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		text, err := fs.ReadFile(checkout, f.name)
		if err != nil {
			t.Error(err)
		}
		if diff := cmp.Diff(f.text, string(text)); diff != "" {
			t.Errorf("%s does not follow the registries: run \"make generate\" (-generated +file):\n%s", f.name, diff)
		}
	}
}

func TestADeciderThatIsAddedIsListedEverywhere(t *testing.T) {
	all := append(fpcs.All(), fpcs.Algorithm{Name: "another", About: "does otherwise"})
	files, err := render(os.DirFS("../.."), lists{all})
	if err != nil {
		t.Fatal(err)
	}
	if len(files) < 7 {
		t.Errorf("%d files list deciders", len(files))
	}
	for _, f := range files {
		if !strings.Contains(f.text, "another") {
			t.Errorf("%s does not name it", f.name)
		}
	}
}

// controller-gen writes the CRDs from the code that listings writes.
func TestTheCRDKnowsEveryDecider(t *testing.T) {
	enum := regexp.MustCompile(`decider:\n(?:.*\n){1,6}? +enum:\n((?: +- \w+\n)+)`)
	for _, folder := range []string{"config/crd", "charts/windlass/files/crds"} {
		text, err := os.ReadFile(filepath.Join("../..", folder, "windlass.dev_functions.yaml"))
		if err != nil {
			t.Fatal(err)
		}
		found := enum.FindStringSubmatch(string(text))
		if found == nil {
			t.Fatalf("%s: no enum", folder)
		}
		if diff := cmp.Diff(fpcs.Names(), strings.Fields(strings.ReplaceAll(found[1], "- ", ""))); diff != "" {
			t.Errorf("%s: run \"make generate\" (-registry +CRD):\n%s", folder, diff)
		}
	}
}

func TestAPlaceThatIsGoneIsNamed(t *testing.T) {
	before := places
	defer func() { places = before }()
	places = []place{{"docs/glossary.md", "(no such)(place)", deciderChoice}}
	if _, err := render(os.DirFS("../.."), lists{fpcs.All()}); err == nil || !strings.Contains(err.Error(), "docs/glossary.md: 0 places match") {
		t.Errorf("error %v", err)
	}
}
