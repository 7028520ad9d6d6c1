package archtest

import (
	"go/ast"
	"go/doc"
	"path"
	"slices"
	"strings"
	"testing"
)

func TestEveryPurePackageHasAnExample(t *testing.T) {
	all := packages(t)
	for _, pkg := range pure() {
		var files []*ast.File
		for _, file := range all[pkg] {
			// Others can only use what is exported.
			if path.Base(file.path) == "example_test.go" && strings.HasSuffix(file.ast.Name.Name, "_test") {
				files = append(files, file.ast)
			}
		}
		checked := func(e *doc.Example) bool { return e.Output != "" }
		if !slices.ContainsFunc(doc.Examples(files...), checked) {
			t.Errorf("%s/example_test.go, in a package of its own, has no Example with output: show what %s decides", pkg, pkg)
		}
	}
}
