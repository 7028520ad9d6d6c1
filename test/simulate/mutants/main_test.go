package main

import (
	"io"
	"regexp"
	"slices"
	"strings"
	"testing"
)

func TestEveryPatchNamesRulesThatThereAre(t *testing.T) {
	t.Parallel()
	mutants, err := readPatches("patches")
	if err != nil {
		t.Fatal(err)
	}
	if err := printUnnamed(io.Discard, root, mutants); err != nil {
		t.Error(err)
	}
	wrong := patch{name: "wrong", rules: []string{"a call starts once at most, and no later"}}
	if err := printUnnamed(io.Discard, root, []patch{wrong}); err == nil {
		t.Error("a rule that there is not is accepted")
	}
}

func TestWhatNoticesAMutantIsCounted(t *testing.T) {
	t.Parallel()
	p := patch{name: "m", breaks: "A promise.", rules: []string{"a rule", "one more"}}
	for rule, want := range map[string]outcomes{
		"a rule":   {caught: 1},
		"one more": {caught: 1},
		"another":  {caught: 1, otherwise: 1},
		"":         {missed: 1},
	} {
		var got outcomes
		line := got.add(p, 3, rule)
		if err := got.err(1000); got != want || (err == nil) != (want.caught == 1) || !strings.HasPrefix(line, "mutant_m=") {
			t.Errorf("noticed by %q: %+v, %q, error %v", rule, got, line, err)
		}
	}
}

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
