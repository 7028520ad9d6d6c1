package archtest

import (
	"path"
	"strings"
	"testing"
)

func TestEveryPackageSaysWhatItIsFor(t *testing.T) {
	for pkg, files := range packages(t) {
		var documented []sourceFile
		name := ""
		for _, file := range files {
			if file.isTest() {
				continue
			}
			name = file.ast.Name.Name
			if file.ast.Doc != nil {
				documented = append(documented, file)
			}
		}
		want := "doc.go"
		if name == "main" {
			want = "main.go"
		}
		switch {
		case len(documented) == 0:
			t.Errorf("package %s has no comment: say in %s/%s what it decides and promises", pkg, pkg, want)
		case len(documented) > 1:
			t.Errorf("package %s has comments in %s and %s: only one is read, keep it in %s",
				pkg, documented[0].path, documented[1].path, want)
		case path.Base(documented[0].path) != want:
			t.Errorf("the comment of package %s is in %s: move it to %s, where people look for it", pkg, documented[0].path, want)
		}
		opening := "Package " + name + " "
		if name != "main" && len(documented) == 1 && !strings.HasPrefix(documented[0].ast.Doc.Text(), opening) {
			t.Errorf("the comment of package %s does not begin with %q", pkg, opening)
		}
	}
}
