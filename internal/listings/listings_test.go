package main

import (
	"io/fs"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/windlass-dev/windlass/api/v1alpha1"
	"github.com/windlass-dev/windlass/internal/runtimes"
	"github.com/windlass-dev/windlass/pkg/autoscaler"
)

func TestWhatIsListedFollowsTheRegistries(t *testing.T) {
	checkout := os.DirFS("../..")
	files, err := render(checkout, lists{autoscaler.All(), runtimes.Names()})
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

func TestWhatIsAddedIsListedEverywhere(t *testing.T) {
	all := append(autoscaler.All(), autoscaler.Algorithm{Name: "another-decider", About: "does otherwise"})
	files, err := render(os.DirFS("../.."), lists{all, append(runtimes.Names(), "another-language")})
	if err != nil {
		t.Fatal(err)
	}
	deciders, languages := 0, 0
	for _, f := range files {
		language := strings.Contains(f.text, "another-language")
		decider := strings.Contains(f.text, "another-decider")
		if !language && !decider {
			t.Errorf("%s names neither", f.name)
		}
		if language {
			languages++
		}
		if decider {
			deciders++
		}
	}
	if deciders != 6 || languages != 7 {
		t.Errorf("%d files list deciders, and %d runtimes", deciders, languages)
	}
}

var shimsIn = regexp.MustCompile(`(?m)^COPY internal/runtimes/shims/(\S+) /runtime$`)

func TestEveryRuntimeHasShimsAndAnImage(t *testing.T) {
	recipes, err := os.ReadFile("../../images/build/recipes.go")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range runtimes.Names() {
		dockerfile, err := os.ReadFile("../../images/runtime-" + name + "/Dockerfile")
		if err != nil {
			t.Error(err)
			continue
		}
		if folder := shimsIn.FindSubmatch(dockerfile); folder == nil {
			t.Errorf("images/runtime-%s/Dockerfile copies no shims", name)
		} else if _, err := os.Stat("../../internal/runtimes/shims/" + string(folder[1])); err != nil {
			t.Error(err)
		}
		version := runtimes.Version(v1alpha1.RuntimeName(name))
		if !strings.Contains(string(dockerfile), ":"+version+"-slim\nARG ") || !strings.HasSuffix(strings.TrimSuffix(name, ".x"), version) {
			t.Errorf("images/runtime-%s/Dockerfile is not of an image of version %q, or the name does not say so", name, version)
		}
		if !strings.Contains(string(recipes), `"runtime-`+name+`"`) {
			t.Errorf("images/build/recipes.go has no recipe of runtime-%s", name)
		}
	}
}

func TestAPlaceThatIsGoneIsNamed(t *testing.T) {
	before := places
	defer func() { places = before }()
	places = []place{{"docs/glossary.md", "(no such)(place)", deciderChoice}}
	if _, err := render(os.DirFS("../.."), lists{autoscaler.All(), runtimes.Names()}); err == nil || !strings.Contains(err.Error(), "docs/glossary.md: 0 places match") {
		t.Errorf("error %v", err)
	}
}
