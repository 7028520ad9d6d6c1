package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

const enabled = "files: _types.go\nlinters: {enable: [optionalorrequired, nobools], disable: ['*']}\n"

func TestFindingsAndExceptions(t *testing.T) {
	for name, tc := range map[string]struct {
		except string
		want   []string // parts of the lines
	}{
		"nothing is excepted":       {"", []string{"Thing.Big", "Thing.Unmarked"}},
		"a field is excepted":       {"- {rule: nobools, fields: [Thing.Big], why: it is}", []string{"Thing.Unmarked"}},
		"another rule is excepted":  {"- {rule: maxlength, fields: [Thing.Big], why: it is}", []string{"Thing.Big", "Thing.Unmarked", "maxlength finds nothing about Thing.Big"}},
		"all fields are excepted":   {"- {rule: nobools, fields: ['*'], why: they are}", []string{"Thing.Unmarked"}},
		"other words are excepted":  {"- {rule: nobools, says: pointer, fields: ['*'], why: they are}", []string{"Thing.Big", "Thing.Unmarked", "finds nothing about *"}},
		"other tags are excepted":   {"- {rule: nobools, tag: omitzero, fields: ['*'], why: they are}", []string{"Thing.Big", "Thing.Unmarked", "finds nothing about *"}},
		"an exception is not used":  {"- {rule: nobools, fields: [Thing.Big, Thing.Small], why: it is}", []string{"Thing.Unmarked", "Thing.Small"}},
		"an exception has no cause": {"- {rule: nobools, fields: [Thing.Big]}", nil},
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "rules.yaml")
			if err := os.WriteFile(path, []byte(enabled+"except:\n"+tc.except+"\n"), 0o600); err != nil {
				t.Fatal(err)
			}
			wrong, err := lint(path, ".", "./testdata/api")
			if (err != nil) != (tc.want == nil) || len(wrong) != len(tc.want) {
				t.Fatalf("%q, %v; want %q", wrong, err, tc.want)
			}
			for _, want := range tc.want {
				if !strings.Contains(strings.Join(wrong, "\n"), want) {
					t.Errorf("%q, want %q", wrong, want)
				}
			}
		})
	}
}
