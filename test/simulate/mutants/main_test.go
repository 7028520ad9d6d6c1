package main

import (
	"regexp"
	"slices"
	"testing"
)

func TestANameThatNoMutantHasIsRefused(t *testing.T) {
	t.Parallel()
	for only, want := range map[string][]string{
		"":       {"queue-a", "pool-b"},
		"^queue": {"queue-a"},
		"quue":   nil,
	} {
		got, err := chosen([]patch{{name: "queue-a"}, {name: "pool-b"}}, regexp.MustCompile(only))
		var names []string
		for _, p := range got {
			names = append(names, p.name)
		}
		if !slices.Equal(names, want) || (err == nil) != (want != nil) {
			t.Errorf("-only %q: %v, error %v", only, names, err)
		}
	}
	if _, err := chosen(nil, regexp.MustCompile("")); err == nil {
		t.Error("an empty folder is accepted")
	}
}
