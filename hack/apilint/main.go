// Command apilint checks the types of an API with the analyzers of kube-api-linter, by the
// rules that a file lists. Of what they find, the file lists what is as it should be, and
// why; what it lists and is not found any more is an error too.
package main

import (
	"fmt"
	"go/token"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/tools/go/analysis/checker"
	"golang.org/x/tools/go/packages"
	"sigs.k8s.io/kube-api-linter/pkg/analysis/registry"
	"sigs.k8s.io/kube-api-linter/pkg/config"
	_ "sigs.k8s.io/kube-api-linter/pkg/registration"
	"sigs.k8s.io/yaml"
)

func main() {
	if len(os.Args) != 4 {
		fmt.Fprintln(os.Stderr, "usage: apilint RULES FOLDER PACKAGE")
		os.Exit(2)
	}
	wrong, err := lint(os.Args[1], os.Args[2], os.Args[3])
	if err != nil {
		fmt.Fprintln(os.Stderr, "apilint:", err)
		os.Exit(2)
	}
	for _, one := range wrong {
		fmt.Fprintln(os.Stderr, one)
	}
	if len(wrong) > 0 {
		os.Exit(1)
	}
}

// rules are what is checked, and what of it is as it should be.
type rules struct {
	// Files is what the names of files that are checked end in: others have types that
	// nobody writes in a manifest.
	Files   string `json:"files"`
	Linters struct {
		Enable  []string `json:"enable"`
		Disable []string `json:"disable"`
	} `json:"linters"`
	// LintersConfig is that of kube-api-linter, by analyzer.
	LintersConfig config.LintersConfig `json:"lintersConfig"`
	// Except is what is found and is as it should be.
	Except []*exception `json:"except"`
}

// exception is why findings of one rule are as they should be.
type exception struct {
	Rule string `json:"rule"`
	// Fields are those that it is about, such as Function.Spec, or * for all.
	Fields []string `json:"fields"`
	// Says and Tag are texts that the message and the field's tag have in them; they may
	// be empty.
	Says string `json:"says"`
	Tag  string `json:"tag"`
	Why  string `json:"why"`

	used map[string]bool
}

// finding is what a rule says of a field.
type finding struct {
	rule, message string
	// line is that of the source.
	line string
}

func (e *exception) covers(f finding) bool {
	if e.Rule != f.rule || !strings.Contains(f.message, e.Says) || !strings.Contains(f.line, e.Tag) {
		return false
	}
	for _, field := range e.Fields {
		if field == "*" || slices.Contains(strings.Fields(f.message), field) {
			e.used[field] = true
			return true
		}
	}
	return false
}

// lint returns what is wrong with a package below a folder, a line each.
func lint(path, folder, pattern string) ([]string, error) {
	r, err := read(path)
	if err != nil {
		return nil, err
	}
	analyzers, err := registry.DefaultRegistry().InitializeLinters(
		config.Linters{Enable: r.Linters.Enable, Disable: r.Linters.Disable}, r.LintersConfig)
	if err != nil {
		return nil, err
	}
	found, err := packages.Load(&packages.Config{Mode: packages.LoadSyntax, Dir: folder}, pattern)
	if err != nil {
		return nil, err
	}
	if packages.PrintErrors(found) > 0 {
		return nil, fmt.Errorf("%s cannot be loaded", pattern)
	}
	graph, err := checker.Analyze(analyzers, found, nil)
	if err != nil {
		return nil, err
	}
	wrong, err := r.judge(graph, folder)
	return append(wrong, r.unused(path)...), err
}

func read(path string) (*rules, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	r := &rules{}
	if err := yaml.UnmarshalStrict(text, r); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	for _, e := range r.Except {
		e.used = make(map[string]bool)
		if e.Rule == "" || e.Why == "" || len(e.Fields) == 0 {
			return nil, fmt.Errorf("%s: an exception needs rule, fields and why: %+v", path, *e)
		}
	}
	return r, nil
}

// judge returns the findings that no exception covers.
func (r *rules) judge(graph *checker.Graph, folder string) (wrong []string, err error) {
	root, err := filepath.Abs(folder)
	if err != nil {
		return nil, err
	}
	for _, action := range graph.Roots {
		if action.Err != nil {
			return nil, action.Err
		}
		for _, d := range action.Diagnostics {
			at := action.Package.Fset.Position(d.Pos)
			if !strings.HasSuffix(at.Filename, r.Files) {
				continue
			}
			line, err := lineAt(at)
			if err != nil {
				return nil, err
			}
			if r.excepted(finding{action.Analyzer.Name, d.Message, line}) {
				continue
			}
			if relative, err := filepath.Rel(root, at.Filename); err == nil {
				at.Filename = relative
			}
			wrong = append(wrong, fmt.Sprintf("%s: %s (%s)", at, d.Message, action.Analyzer.Name))
		}
	}
	slices.Sort(wrong)
	return slices.Compact(wrong), nil
}

// lineAt is the line of source at a position.
func lineAt(at token.Position) (string, error) {
	text, err := os.ReadFile(at.Filename)
	if err != nil {
		return "", err
	}
	return strings.Split(string(text), "\n")[at.Line-1], nil
}

func (r *rules) excepted(f finding) (is bool) {
	for _, e := range r.Except {
		is = e.covers(f) || is
	}
	return is
}

// unused returns the exceptions that nothing needs any more.
func (r *rules) unused(path string) (wrong []string) {
	for _, e := range r.Except {
		for _, field := range e.Fields {
			if !e.used[field] {
				wrong = append(wrong, fmt.Sprintf("%s: %s finds nothing about %s that says %q: remove the exception", path, e.Rule, field, e.Says))
			}
		}
	}
	return wrong
}
