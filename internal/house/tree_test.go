package main

import (
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"
)

// program adds files with a package clause to the smallest module.
func program(files map[string]string) fstest.MapFS {
	all := tree(nil)
	for name, text := range files {
		all[name] = &fstest.MapFile{Data: []byte(text)}
	}
	return all
}

func TestBoxesAreTheFoldersOfPkgAndImportInOneOrder(t *testing.T) {
	found, err := measure(program(map[string]string{
		"pkg/queue/queue.go":         "package queue\nimport _ \"github.com/windlass-dev/windlass/pkg/invocation\"\n",
		"pkg/queue/part/part.go":     "package part\nimport _ \"github.com/windlass-dev/windlass/pkg/gateway\"\n",
		"pkg/gateway/gateway.go":     "package gateway\nimport _ \"github.com/windlass-dev/windlass/pkg/queue\"\n",
		"pkg/gateway/g_test.go":      "package gateway\nimport _ \"github.com/windlass-dev/windlass/pkg/controller\"\n",
		"pkg/invocation/id.go":       "package invocation\n",
		"internal/metric/m.go":       "package metric\nimport _ \"github.com/windlass-dev/windlass/pkg/invocation\"\n",
		"cmd/windlass/main.go":       "package main\nimport _ \"github.com/windlass-dev/windlass/internal/metric\"\n",
		"test/faults/lab/program.go": "package lab\nimport _ \"github.com/windlass-dev/windlass/pkg/gateway\"\n",
	}))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"gateway", "invocation", "queue"}, found.boxes.names); diff != "" {
		t.Errorf("boxes (-want +got):\n%s", diff)
	}
	if found.boxes.arrows != 3 {
		t.Errorf("counted %d arrows, want 3", found.boxes.arrows)
	}
	want := []figure{{name: "queue imports gateway", n: 1}}
	if diff := cmp.Diff(want, found.boxes.against, cmp.AllowUnexported(figure{})); diff != "" {
		t.Errorf("imports against the order (-want +got):\n%s", diff)
	}
	want = []figure{{name: "pkg/queue", n: 1, what: "pkg/gateway"}}
	if diff := cmp.Diff(want, found.boxes.lonely, cmp.AllowUnexported(figure{})); diff != "" {
		t.Errorf("packages with one importer (-want +got):\n%s", diff)
	}
}

func TestHomesAreTypesAndPackages(t *testing.T) {
	found := measured(t, map[string]string{
		"a.go": "type T struct{}\nfunc (T) take() {}\nfunc (T) String() string\nfunc take() {}\n",
		"b.go": "func (*U) take() {}\nfunc (U) String() string\n",
	})
	want := []figure{{name: "take", n: 3, what: "pkg/a.T, pkg/a, pkg/a.U"}}
	if diff := cmp.Diff(want, found.homes, cmp.AllowUnexported(figure{})); diff != "" {
		t.Errorf("homes (-want +got):\n%s", diff)
	}
}

func TestForbiddenWordsAreFoundInNamesAndTexts(t *testing.T) {
	found, err := measure(program(map[string]string{
		"pkg/a/a.go":         "package a\n// A gift.\nfunc f(giftOf int) { someGifts, gifted := 1, 2 }\n",
		"pkg/a/a_test.go":    "package a\nfunc TestHeirs(heir int) {}\n",
		"docs/page.md":       "Gifts are made by an heir, and a gift.\n",
		"docs/results/r.txt": "a gift\n",
		"charts/c/v.bin":     "gift",
	}))
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]int{}
	for _, of := range found.forbidden {
		got[of.name] = of.n
	}
	want := map[string]int{
		"pkg/a.giftOf": 1, "pkg/a.someGifts": 1, "pkg/a.heir": 1,
		"docs/page.md: Gifts": 1, "docs/page.md: heir": 1, "docs/page.md: gift": 1,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("forbidden words (-want +got):\n%s", diff)
	}
}
