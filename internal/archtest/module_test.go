package archtest

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

const module = "github.com/windlass-dev/windlass"

// sourceFile is one Go file of the module.
type sourceFile struct {
	// path is relative to the module, with slashes.
	path string
	ast  *ast.File
	fset *token.FileSet
}

func (f sourceFile) isTest() bool { return strings.HasSuffix(f.path, "_test.go") }

// imports lists what f imports; packages of the module by their folder.
func (f sourceFile) imports(t *testing.T) []string {
	t.Helper()
	var out []string
	for _, spec := range f.ast.Imports {
		imported, err := strconv.Unquote(spec.Path.Value)
		if err != nil {
			t.Fatalf("%s: import %s: %v", f.path, spec.Path.Value, err)
		}
		out = append(out, local(imported))
	}
	return out
}

// mentions calls found for every use in f of one of the names of an imported
// package, under whatever name it is imported.
func (f sourceFile) mentions(imported string, names []string, found func(name string, at token.Position)) {
	for _, spec := range f.ast.Imports {
		if spec.Path.Value != strconv.Quote(imported) {
			continue
		}
		alias := path.Base(strings.TrimSuffix(imported, "/v2"))
		if spec.Name != nil {
			alias = spec.Name.Name
		}
		ast.Inspect(f.ast, func(n ast.Node) bool {
			selector, ok := n.(*ast.SelectorExpr)
			if !ok {
				return true
			}
			if of, ok := selector.X.(*ast.Ident); ok && of.Name == alias && slices.Contains(names, selector.Sel.Name) {
				found(imported+"."+selector.Sel.Name, f.fset.Position(selector.Pos()))
			}
			return true
		})
	}
}

// local is the folder of a package of the module, and any other import path as
// it is.
func local(importPath string) string {
	return strings.TrimPrefix(importPath, module+"/")
}

// under tells whether a path is a folder or lies below it.
func under(path, folder string) bool {
	return path == folder || strings.HasPrefix(path, folder+"/")
}

// moduleRoot is the folder of go.mod.
func moduleRoot(t *testing.T) string {
	t.Helper()
	root, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(root, "go.mod")); err != nil {
		t.Fatalf("finding the module: %v", err)
	}
	return root
}

// packages reads every Go file of the module, by folder. Files are read in this
// process, not by a go command, so that a cached test result notices changes.
func packages(t *testing.T) map[string][]sourceFile {
	t.Helper()
	root := moduleRoot(t)
	out := map[string][]sourceFile{}
	err := filepath.WalkDir(root, func(full string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name := entry.Name()
		if entry.IsDir() {
			if full != root && !holdsPackages(full, name) {
				return filepath.SkipDir
			}
			return nil
		}
		if !strings.HasSuffix(name, ".go") || strings.HasPrefix(name, ".") || strings.HasPrefix(name, "_") {
			return nil
		}
		fset := token.NewFileSet()
		parsed, err := parser.ParseFile(fset, full, nil, parser.ParseComments|parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		relative, err := filepath.Rel(root, full)
		if err != nil {
			return err
		}
		relative = filepath.ToSlash(relative)
		out[path.Dir(relative)] = append(out[path.Dir(relative)], sourceFile{relative, parsed, fset})
		return nil
	})
	if err != nil {
		t.Fatalf("reading the module's source: %v", err)
	}
	if len(out) < 10 {
		t.Fatalf("found only %d packages in %s: %v", len(out), root, slices.Collect(maps.Keys(out)))
	}
	return out
}

// holdsPackages tells whether the go command looks for the module's packages in
// a folder.
func holdsPackages(full, name string) bool {
	switch {
	case strings.HasPrefix(name, "."), strings.HasPrefix(name, "_"):
		return false
	case name == "testdata", name == "vendor", name == "node_modules":
		return false
	}
	_, err := os.Stat(filepath.Join(full, "go.mod"))
	return err != nil
}
