package main

import (
	"errors"
	"go/ast"
	"go/token"
	"io/fs"
	"path"
	"regexp"
	"slices"
	"strings"
)

// conventional are names of functions that mean the same on every type, because the
// standard library gives them to many: they may have any number of homes.
var conventional = []string{
	"String", "Error", "Unwrap", "New", "Run", "Close", "Read", "Write", "Start", "Stop", "Len", "Reset", "Get",
	"Add", "Type", "Validate", "main", "init",
	"run", "close", "read", "write", "start", "stop", "add", "validate",
	// Members of a sum type: markers, and what an event or a scheduler's reply does to a core.
	"isEvent", "isEffect", "isGatewayEffect", "isNodeEffect", "apply", "reply",
}

// maxHomes is how many functions and methods may have the same name: somebody who looks
// for one of them must not have to choose among a dozen.
const maxHomes = 6

// homes counts the types and packages that declare a function of each name.
func homes(files []source) []figure {
	found := map[string][]string{}
	for _, file := range files {
		for _, decl := range file.ast.Decls {
			function, ok := decl.(*ast.FuncDecl)
			if !ok || slices.Contains(conventional, function.Name.Name) {
				continue
			}
			home := file.pkg
			if function.Recv != nil {
				_, of := file.nameOf(function.Recv.List[0].Type)
				home += "." + of
			}
			if name := function.Name.Name; !slices.Contains(found[name], home) {
				found[name] = append(found[name], home)
			}
		}
	}
	var all []figure
	for name, in := range found {
		all = append(all, figure{name: name, n: len(in), what: strings.Join(in, ", ")})
	}
	return all
}

// forbidden are words that no name has, and what the field says instead. A word counts as
// a part of a camel-case name, in every Go file of the module, tests included.
var forbidden = map[string]string{
	"alarm":       "timer",
	"attend":      "serve",
	"beat":        "heartbeat",
	"beats":       "heartbeats",
	"birth":       "start",
	"births":      "pending starts",
	"born":        "started",
	"chronicle":   "decision log",
	"crowded":     "over the limit",
	"disown":      "release",
	"doom":        "to delete",
	"doomed":      "to delete",
	"fpcs":        "autoscaler",
	"gift":        "handoff",
	"gifts":       "handoffs",
	"greeted":     "connected",
	"happening":   "event",
	"happenings":  "events",
	"heir":        "standby",
	"historian":   "decision getter",
	"hopeless":    "overloaded",
	"kick":        "trigger",
	"kicked":      "triggered",
	"ledger":      "what it counts: usage, entries",
	"nodepick":    "placement",
	"observatory": "snapshotter",
	"onlooker":    "follower",
	"outlook":     "estimate",
	"puppet":      "fake",
	"ride":        "inline",
	"rides":       "inlined",
	"riding":      "inlined",
	"scene":       "harness",
	"spoil":       "discard",
	"standstill":  "pause",
	"stillborn":   "failed start",
	"storyteller": "call lookup",
	"tally":       "counters",
	"theatre":     "harness",
	"unhurried":   "slow",
	"unlearn":     "reset",
	"unoffer":     "mark as not queued",
	"upkeep":      "floor",
	"withdraw":    "cancel",
	"witness":     "observer",
}

var (
	camel = regexp.MustCompile(`[A-Z]+[a-z]*|[a-z]+`)
	plain = regexp.MustCompile(`[A-Za-z]+`)
)

// forbiddenNames are the names that have a forbidden word, in all Go files of the module,
// and the texts that have one, by their file.
func forbiddenNames(tree fs.FS) ([]figure, error) {
	found := map[string]*figure{}
	note := func(where, word string) {
		if instead, bad := forbidden[strings.ToLower(word)]; bad {
			if found[where] == nil {
				found[where] = &figure{name: where, what: "say " + instead}
			}
			found[where].n++
		}
	}
	for _, folder := range append([]string{"test"}, product...) {
		err := eachFile(tree, folder, func(name string, file *ast.File, _ int) {
			if ast.IsGenerated(file) {
				return
			}
			eachDeclared(file, func(declared string) {
				for _, word := range camel.FindAllString(declared, -1) {
					note(path.Dir(name)+"."+declared, word)
				}
			})
		})
		if err != nil {
			return nil, err
		}
	}
	for _, folder := range texts {
		err := fs.WalkDir(tree, folder, func(name string, entry fs.DirEntry, err error) error {
			if err == nil && entry.IsDir() && slices.Contains(installed, entry.Name()) {
				return fs.SkipDir
			}
			if err != nil || entry.IsDir() || !slices.Contains(textual, path.Ext(name)) || strings.HasPrefix(name, "docs/results/") {
				return ignoreMissing(err)
			}
			text, err := fs.ReadFile(tree, name)
			for _, word := range plain.FindAllString(string(text), -1) {
				note(name+": "+word, word)
			}
			return err
		})
		if err != nil {
			return nil, err
		}
	}
	var all []figure
	for _, of := range found {
		all = append(all, *of)
	}
	return all, nil
}

// installed are folders of what others wrote, which make examples installs.
var installed = []string{"node_modules", ".venv"}

// texts are where people read of the product, by folders and files, and textual the files
// there that are texts. Results are recorded output.
var (
	texts   = []string{"README.md", "docs", "charts", "config", "examples", "api/wire"}
	textual = []string{".md", ".yaml", ".tpl", ".txt", ".json", ".proto"}
)

func ignoreMissing(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// eachDeclared calls visit for each name that a file declares.
func eachDeclared(file *ast.File, visit func(name string)) {
	look := func(names ...ast.Expr) {
		for _, name := range names {
			if id, ok := name.(*ast.Ident); ok && id != nil {
				visit(id.Name)
			}
		}
	}
	idents := func(names []*ast.Ident) {
		for _, name := range names {
			visit(name.Name)
		}
	}
	visit(file.Name.Name)
	ast.Inspect(file, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.FuncDecl:
			visit(n.Name.Name)
		case *ast.TypeSpec:
			visit(n.Name.Name)
		case *ast.Field:
			idents(n.Names)
		case *ast.ValueSpec:
			idents(n.Names)
		case *ast.AssignStmt:
			if n.Tok == token.DEFINE {
				look(n.Lhs...)
			}
		case *ast.RangeStmt:
			look(n.Key, n.Value)
		}
		return true
	})
}
