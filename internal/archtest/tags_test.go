package archtest

import (
	"slices"
	"testing"
)

// tagged names the build tag of tests that use a package. Without a tag, go test runs
// what needs Go only.
var tagged = map[string]string{
	"internal/apitest":       "apiserver",
	"internal/lambdaclients": "clients",
}

func TestTestsThatNeedMoreThanGoHaveATag(t *testing.T) {
	found := map[string]bool{}
	for _, files := range packages(t) {
		for _, file := range files {
			for _, imported := range file.imports(t) {
				tag, ok := tagged[imported]
				if !ok {
					continue
				}
				found[imported] = true
				if !slices.Contains(file.constraints(), "//go:build "+tag) {
					t.Errorf("%s imports %s: begin it with //go:build %s", file.path, imported, tag)
				}
			}
		}
	}
	for pkg := range tagged {
		if !found[pkg] {
			t.Errorf("no test imports %s", pkg)
		}
	}
}

// constraints are the comments of f before its package clause.
func (f sourceFile) constraints() (lines []string) {
	for _, group := range f.ast.Comments {
		for _, comment := range group.List {
			if comment.Pos() < f.ast.Package {
				lines = append(lines, comment.Text)
			}
		}
	}
	return lines
}
