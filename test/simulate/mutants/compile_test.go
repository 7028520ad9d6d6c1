package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"go/ast"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"maps"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"testing"
)

// checker compiles packages of the product as far as their types, with files that a mutant changes. A mutant that
// does not compile would be found by a simulation that only runs on some days.
type checker struct {
	fset     *token.FileSet
	imports  types.Importer
	packages map[string]listed // by folder, such as pkg/queue
}

// listed is a package as go list prints it.
type listed struct {
	Dir, ImportPath, Export string
	GoFiles                 []string
}

// newChecker lists the packages of some folders, and what they need.
func newChecker(t *testing.T, folders []string) *checker {
	t.Helper()
	args := []string{"list", "-export", "-deps", "-json=Dir,ImportPath,Export,GoFiles"}
	for _, folder := range folders {
		args = append(args, "./"+folder)
	}
	list := exec.CommandContext(t.Context(), "go", args...)
	list.Dir, list.Stderr = root, os.Stderr
	out, err := list.Output()
	if err != nil {
		t.Fatalf("go list: %v", err)
	}
	module, err := filepath.Abs(root)
	if err != nil {
		t.Fatal(err)
	}
	c := &checker{fset: token.NewFileSet(), packages: make(map[string]listed)}
	exports := make(map[string]string)
	for d := json.NewDecoder(bytes.NewReader(out)); ; {
		var p listed
		if err := d.Decode(&p); err == io.EOF {
			break
		} else if err != nil {
			t.Fatal(err)
		}
		exports[p.ImportPath] = p.Export
		if folder, err := filepath.Rel(module, p.Dir); err == nil {
			c.packages[filepath.ToSlash(folder)] = p
		}
	}
	c.imports = importer.ForCompiler(c.fset, "gc", func(of string) (io.ReadCloser, error) { return os.Open(exports[of]) })
	return c
}

// check compiles the packages of the files, which are by their paths in the module.
func (c *checker) check(changed map[string]string) error {
	folders := make(map[string]bool)
	for file := range changed {
		folders[path.Dir(file)] = true
	}
	for folder := range folders {
		p, known := c.packages[folder]
		if !known {
			return fmt.Errorf("%s is no package", folder)
		}
		var files []*ast.File
		for _, name := range p.GoFiles {
			var source any
			if text, is := changed[path.Join(folder, name)]; is {
				source = text
			}
			file, err := parser.ParseFile(c.fset, filepath.Join(p.Dir, name), source, parser.SkipObjectResolution)
			if err != nil {
				return err
			}
			files = append(files, file)
		}
		if _, err := (&types.Config{Importer: c.imports}).Check(p.ImportPath, c.fset, files, nil); err != nil {
			return err
		}
	}
	return nil
}

func TestEveryMutantCompiles(t *testing.T) {
	mutants, err := readPatches("patches")
	if err != nil {
		t.Fatal(err)
	}
	folders := make(map[string]bool)
	for _, p := range mutants {
		for _, h := range p.hunks {
			folders[path.Dir(h.file)] = true
		}
	}
	c := newChecker(t, slices.Sorted(maps.Keys(folders)))
	for _, p := range mutants {
		files, err := p.apply(root)
		if err != nil {
			t.Error(err)
			continue
		}
		if err := c.check(files); err != nil {
			t.Errorf("mutant %s does not compile: %v", p.name, err)
		}
	}
	if err := c.check(map[string]string{"pkg/queue/match.go": "package queue\n\nfunc f() int { unused := 1 }\n"}); err == nil {
		t.Error("a package that does not compile is accepted")
	}
}
