package main

import (
	"go/ast"
	"regexp"
	"slices"
	"strings"
)

// structure is a struct type, named after its declaration and the fields that
// lead to it.
type structure struct {
	name   string
	fields []*ast.Field
}

// structures lists the structs of a file. One without a name is found under
// the type that it is part of; those in the bodies of functions, which no
// other goroutine sees, are left out unless they have a name.
func (s source) structures() []structure {
	var all []structure
	s.eachType(func(spec *ast.TypeSpec) {
		all = append(all, inside(s.pkg+"."+spec.Name.Name, spec.Type)...)
	})
	return all
}

// inside lists the structs in a type, but for those that have names.
func inside(name string, expr ast.Expr) []structure {
	var all []structure
	ast.Inspect(expr, func(n ast.Node) bool {
		structType, ok := n.(*ast.StructType)
		if !ok {
			return true
		}
		all = append(all, structure{name, structType.Fields.List})
		for _, field := range structType.Fields.List {
			below := name
			if len(field.Names) > 0 {
				below += "." + field.Names[0].Name
			}
			all = append(all, inside(below, field.Type)...)
		}
		return false
	})
	return all
}

// contexts lists the fields that are a context.
func (s source) contexts(of structure) []string {
	var all []string
	for _, field := range of.fields {
		if pkg, name := s.nameOf(field.Type); pkg == "context" && name == "Context" {
			names := "Context"
			if len(field.Names) > 0 {
				names = field.Names[0].Name
			}
			all = append(all, of.name+"."+names)
		}
	}
	return all
}

var (
	ofGoroutine = regexp.MustCompile(`(?i)\b(?:of|by|only) (?:the|its|[\w.]+'s) goroutine\b`)
	ofLock      = regexp.MustCompile(`\b([\w.]+)'s lock\b`)
)

// guards lists the ways in which a struct's fields are guarded; main.go says
// what they are.
func (s source) guards(of structure) []string {
	var ways []string
	add := func(way string) {
		if !slices.Contains(ways, way) {
			ways = append(ways, way)
		}
	}
	for _, field := range of.fields {
		pkg, name := s.nameOf(field.Type)
		if pkg == "sync" && (name == "Mutex" || name == "RWMutex") {
			if len(field.Names) == 0 {
				add(name)
			}
			for _, ident := range field.Names {
				add(ident.Name)
			}
			continue
		}
		if pkg == "sync" && (name == "Map" || name == "Once") {
			add("sync." + name)
		}
		if s.holdsAtomic(field.Type) {
			add("atomics")
		}
		comment := strings.Join(strings.Fields(field.Doc.Text()+" "+field.Comment.Text()), " ")
		if ofGoroutine.MatchString(comment) {
			add("a goroutine")
		}
		for _, found := range ofLock.FindAllStringSubmatch(comment, -1) {
			add(found[1] + "'s lock")
		}
	}
	return ways
}

// holdsAtomic tells whether a type is one of sync/atomic, or a pointer, slice,
// array or map of such.
func (s source) holdsAtomic(expr ast.Expr) bool {
	switch e := expr.(type) {
	case *ast.StarExpr:
		return s.holdsAtomic(e.X)
	case *ast.ArrayType:
		return s.holdsAtomic(e.Elt)
	case *ast.MapType:
		return s.holdsAtomic(e.Value)
	}
	pkg, _ := s.nameOf(expr)
	return pkg == "sync/atomic"
}
