package main

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path"
	"strings"
)

// module is the import path of the product's module.
const module = "github.com/windlass-dev/windlass/"

// product lists the folders of the product's code.
var product = []string{"cmd", "pkg", "api", "internal"}

// source is a file of the product.
type source struct {
	pkg   string // the folder, from that of the module
	ast   *ast.File
	lines int
}

// read parses the product's files.
func read(tree fs.FS) ([]source, error) {
	var files []source
	for _, folder := range product {
		err := eachFile(tree, folder, func(name string, file *ast.File, lines int) {
			if !strings.HasSuffix(name, "_test.go") && !ast.IsGenerated(file) {
				files = append(files, source{path.Dir(name), file, lines})
			}
		})
		if err != nil {
			return nil, err
		}
	}
	return files, nil
}

// imported returns the import path that a name stands for in the file, or "".
func (s source) imported(name string) string {
	for _, spec := range s.ast.Imports {
		imported := strings.Trim(spec.Path.Value, `"`)
		if spec.Name != nil && spec.Name.Name == name || spec.Name == nil && path.Base(imported) == name {
			return imported
		}
	}
	return ""
}

// nameOf returns a type's import path and name, such as sync.Mutex, if the
// expression is the name of a type or a pointer to it.
func (s source) nameOf(expr ast.Expr) (pkg, name string) {
	switch e := expr.(type) {
	case *ast.StarExpr:
		return s.nameOf(e.X)
	case *ast.IndexExpr:
		return s.nameOf(e.X)
	case *ast.IndexListExpr:
		return s.nameOf(e.X)
	case *ast.Ident:
		return module + s.pkg, e.Name
	case *ast.SelectorExpr:
		if x, ok := e.X.(*ast.Ident); ok {
			return s.imported(x.Name), e.Sel.Name
		}
	}
	return "", ""
}

// eachType calls visit for every type that is declared in the file, inside
// functions, too.
func (s source) eachType(visit func(spec *ast.TypeSpec)) {
	ast.Inspect(s.ast, func(n ast.Node) bool {
		if spec, ok := n.(*ast.TypeSpec); ok {
			visit(spec)
		}
		return true
	})
}

// importPaths are the paths that the file imports.
func (s source) importPaths() []string {
	var all []string
	for _, spec := range s.ast.Imports {
		all = append(all, strings.Trim(spec.Path.Value, `"`))
	}
	return all
}

// eachFile parses the Go files below a folder, testdata aside, and calls visit for each,
// with the number of its lines.
func eachFile(tree fs.FS, folder string, visit func(name string, file *ast.File, lines int)) error {
	fset := token.NewFileSet()
	return fs.WalkDir(tree, folder, func(name string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir() && entry.Name() == "testdata":
			return fs.SkipDir
		case entry.IsDir() || !strings.HasSuffix(name, ".go"):
			return nil
		}
		text, err := fs.ReadFile(tree, name)
		if err != nil {
			return err
		}
		file, err := parser.ParseFile(fset, name, text, parser.ParseComments|parser.SkipObjectResolution)
		if err != nil {
			return fmt.Errorf("parse: %w", err)
		}
		visit(name, file, strings.Count(string(text), "\n"))
		return nil
	})
}
