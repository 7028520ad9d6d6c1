package main

import (
	"cmp"
	"fmt"
	"go/ast"
	"io"
	"io/fs"
	"slices"
	"strings"
)

// figures is what was measured.
type figures struct {
	methods    []figure // by type
	interfaces []figure // by interface, their methods
	contexts   []figure // by field
	guards     []figure // by struct, ways of guarding
	questions  []figure // by question, files to open
	homes      []figure // by name, the functions and methods that have it
	forbidden  []figure // names with a forbidden word
	boxes      boxes
	subjects   []figure // commits whose subject is too long
	lines      int
	functions  int
}

// figure is a number of one thing, and what makes it up.
type figure struct {
	name string
	n    int
	what string
}

// measure measures the module in a folder.
func measure(tree fs.FS) (*figures, error) {
	files, err := read(tree)
	if err != nil {
		return nil, err
	}
	f := &figures{homes: homes(files)}
	if f.questions, err = filesToOpen(tree); err != nil {
		return nil, err
	}
	if f.boxes, err = lookAtTree(files, tree); err != nil {
		return nil, err
	}
	if f.forbidden, err = forbiddenNames(tree); err != nil {
		return nil, err
	}
	methods := map[string]int{}
	for _, file := range files {
		f.lines += file.lines
		for _, decl := range file.ast.Decls {
			function, ok := decl.(*ast.FuncDecl)
			if !ok {
				continue
			}
			f.functions++
			if name := file.methodOf(function); name != "" {
				methods[file.pkg+"."+name]++
			}
		}
		for _, structure := range file.structures() {
			for _, name := range file.contexts(structure) {
				f.contexts = append(f.contexts, figure{name: name, n: 1})
			}
			if ways := file.guards(structure); len(ways) > 0 {
				f.guards = append(f.guards, figure{structure.name, len(ways), strings.Join(ways, ", ")})
			}
		}
	}
	for name, n := range methods {
		f.methods = append(f.methods, figure{name: name, n: n})
	}
	interfaces := findInterfaces(files)
	for name, contract := range interfaces {
		f.interfaces = append(f.interfaces, figure{name: strings.TrimPrefix(name, module), n: interfaces.methods(contract)})
	}
	for _, all := range [][]figure{f.methods, f.interfaces, f.contexts, f.guards, f.homes, f.forbidden, f.boxes.against, f.boxes.lonely} {
		slices.SortFunc(all, func(a, b figure) int {
			return cmp.Or(cmp.Compare(b.n, a.n), cmp.Compare(a.name, b.name))
		})
	}
	return f, nil
}

// methodOf is the type of the file's package that a function counts as a method of; empty for
// none. What is not exported of an exported type does not count: with it, code that is about one
// value went on in functions of that value once its type had thirty methods, and nobody could tell
// why some were methods. An exported function of the type is a method by another spelling. A type
// that is not exported has no such door, so all of its methods are counted.
func (s source) methodOf(function *ast.FuncDecl) string {
	first, method := function.Type.Params.List, function.Recv != nil
	if method {
		first = function.Recv.List
	}
	if len(first) == 0 {
		return ""
	}
	pkg, name := s.nameOf(first[0].Type)
	hidden := method && !ast.IsExported(name)
	door := function.Name.IsExported() && ast.IsExported(name)
	if pkg != module+s.pkg || !hidden && !door {
		return ""
	}
	return name
}

// print writes a line for each figure, and for each thing beyond a bound.
func (f *figures) print(w io.Writer) {
	for _, of := range f.methods[:min(10, len(f.methods))] {
		fmt.Fprintf(w, "most_methods{%s}=%d\n", of.name, of.n)
	}
	fmt.Fprintf(w, "most_methods=%d\n", most(f.methods))
	large := over(f.interfaces, 3)
	for _, of := range large {
		fmt.Fprintf(w, "interfaces_over_3_methods{%s}=%d\n", of.name, of.n)
	}
	fmt.Fprintf(w, "interfaces_over_3_methods=%d\n", len(large))
	for _, of := range f.contexts {
		fmt.Fprintf(w, "contexts_in_structs{%s}=1\n", of.name)
	}
	fmt.Fprintf(w, "contexts_in_structs=%d\n", len(f.contexts))
	for _, of := range over(f.guards, 1) {
		fmt.Fprintf(w, "ways_of_guarding_one_value{%s}=%d (%s)\n", of.name, of.n, of.what)
	}
	fmt.Fprintf(w, "ways_of_guarding_one_value=%d\n", most(f.guards))
	for _, of := range f.questions {
		fmt.Fprintf(w, "files_to_open{%s}=%d\n", of.name, of.n)
	}
	fmt.Fprintf(w, "boxes=%d\narrows_between_boxes=%d\n", len(f.boxes.names), f.boxes.arrows)
	printAll(w, "imports_against_the_order", f.boxes.against)
	printAll(w, "packages_with_one_importer", f.boxes.lonely)
	printAll(w, "names_with_too_many_homes", over(f.homes, maxHomes))
	printAll(w, "forbidden_words", f.forbidden)
	printAll(w, "subjects_over_72", f.subjects)
	fmt.Fprintf(w, "lines_of_product_code=%d\nfunctions=%d\n", f.lines, f.functions)
}

// printAll writes a line for each figure, and one for their number.
func printAll(w io.Writer, name string, all []figure) {
	for _, of := range all {
		fmt.Fprintf(w, "%s{%s}=%d (%s)\n", name, of.name, of.n, of.what)
	}
	fmt.Fprintf(w, "%s=%d\n", name, len(all))
}

// most returns the largest number of figures.
func most(all []figure) int {
	n := 0
	for _, of := range all {
		n = max(n, of.n)
	}
	return n
}

// over returns the figures beyond a bound.
func over(all []figure, bound int) []figure {
	var beyond []figure
	for _, of := range all {
		if of.n > bound {
			beyond = append(beyond, of)
		}
	}
	return beyond
}
