package main

import (
	"go/ast"
	"io/fs"
	"path"
	"slices"
	"strings"
)

// order is the boxes of pkg, as docs/architecture.md draws them: a box imports only from
// boxes before it.
var order = []string{
	"invocation", "queue", "autoscaler", "rollout", "catalog", "ownership", "podagent", "nodeagent",
	"provisioner", "scheduler", "gateway", "controller",
}

// boxes is the picture that the folders of pkg make.
type boxes struct {
	names   []string // the folders of pkg
	arrows  int      // pairs of boxes that one import or more connects
	against []figure // arrows that run back, by "from imports to"
	lonely  []figure // packages that a single other package imports
}

// box returns the folder of pkg that a package is in, or "".
func box(pkg string) string {
	inside, ok := strings.CutPrefix(pkg, "pkg/")
	if !ok {
		return ""
	}
	name, _, _ := strings.Cut(inside, "/")
	return name
}

// lookAtTree measures how packages import each other, but for their tests. A program is a
// package of its own parts, so a package that only a program imports is not lonely; nor is
// one that only tests import.
func lookAtTree(files []source, tree fs.FS) (boxes, error) {
	var all boxes
	arrows := map[[2]string]int{}
	importers := map[string]map[string]bool{}
	programs := map[string]bool{}
	note := func(pkg, name string, imports []string) {
		programs[pkg] = programs[pkg] || name == "main"
		for _, imported := range imports {
			imported, ours := strings.CutPrefix(imported, module)
			if !ours || imported == pkg {
				continue
			}
			if importers[imported] == nil {
				importers[imported] = map[string]bool{}
			}
			importers[imported][pkg] = true
			if from, to := box(pkg), box(imported); from != "" && to != "" && from != to {
				arrows[[2]string{from, to}]++
			}
		}
	}
	for _, file := range files {
		if b := box(file.pkg); b != "" && !slices.Contains(all.names, b) {
			all.names = append(all.names, b)
		}
		note(file.pkg, file.ast.Name.Name, file.importPaths())
	}
	if err := eachTestProgram(tree, note); err != nil {
		return boxes{}, err
	}
	all.arrows = len(arrows)
	for arrow, n := range arrows {
		if from, to := slices.Index(order, arrow[0]), slices.Index(order, arrow[1]); from < 0 || to < 0 || from < to {
			all.against = append(all.against, figure{name: arrow[0] + " imports " + arrow[1], n: n})
		}
	}
	for pkg, by := range importers {
		if len(by) != 1 || programs[pkg] || strings.HasPrefix(pkg, "api/") {
			continue
		}
		for importer := range by {
			if !programs[importer] {
				all.lonely = append(all.lonely, figure{name: pkg, n: 1, what: importer})
			}
		}
	}
	slices.Sort(all.names)
	return all, nil
}

// eachTestProgram calls note for the files below test that are not tests: they import the
// product, too.
func eachTestProgram(tree fs.FS, note func(pkg, name string, imports []string)) error {
	return eachFile(tree, "test", func(name string, file *ast.File, _ int) {
		if !strings.HasSuffix(name, "_test.go") {
			s := source{pkg: path.Dir(name), ast: file}
			note(s.pkg, file.Name.Name, s.importPaths())
		}
	})
}
