package doccheck

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// inFile matches a name in Go, and the file that it is said to be in.
var inFile = regexp.MustCompile("`(\\w+)` \\(\\[[^\\]]+\\]\\(([^)]+\\.go)\\)")

func TestWhatTheArchitectureNamesIsInItsFile(t *testing.T) {
	const page = root + "/docs/architecture.md"
	text := strings.Join(strings.Fields(read(t, page)), " ")
	found := inFile.FindAllStringSubmatch(text, -1)
	if len(found) == 0 {
		t.Fatalf("%s names nothing as `name` ([file.go](path))", page)
	}
	for _, naming := range found {
		name, file := naming[1], filepath.Join(filepath.Dir(page), filepath.FromSlash(naming[2]))
		if !declared(t, file)[name] {
			t.Errorf("%s declares no %s", naming[2], name)
		}
	}
}

// declared lists the names of what is declared in a Go file, and of its methods.
func declared(t *testing.T, file string) map[string]bool {
	t.Helper()
	parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	names := map[string]bool{}
	for _, decl := range parsed.Decls {
		switch d := decl.(type) {
		case *ast.FuncDecl:
			names[d.Name.Name] = true
		case *ast.GenDecl:
			for _, spec := range d.Specs {
				switch s := spec.(type) {
				case *ast.TypeSpec:
					names[s.Name.Name] = true
				case *ast.ValueSpec:
					for _, ident := range s.Names {
						names[ident.Name] = true
					}
				}
			}
		}
	}
	return names
}
