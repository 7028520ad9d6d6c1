package main

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io"
	"path/filepath"
	"slices"
	"strconv"
)

// printUnnamed prints the rules that no patch names, so that nothing shows that they notice anything. It is an
// error if a patch names a rule that there is not.
func printUnnamed(out io.Writer, root string, mutants []patch) error {
	unnamed, err := rulesOf(root)
	if err != nil {
		return err
	}
	rules := slices.Clone(unnamed)
	for _, p := range mutants {
		for _, rule := range p.rules {
			if !slices.Contains(rules, rule) {
				return fmt.Errorf("mutant %s: test/simulate/sim has no rule %q", p.name, rule)
			}
			unnamed = slices.DeleteFunc(unnamed, func(r string) bool { return r == rule })
		}
	}
	for _, rule := range unnamed {
		fmt.Fprintf(out, "rule_without_mutant: %s\n", rule)
	}
	fmt.Fprintf(out, "rules_with_mutants=%d/%d\n", len(rules)-len(unnamed), len(rules))
	return nil
}

// rulesOf are the rules of the simulator, as they are printed.
func rulesOf(root string) ([]string, error) {
	file, err := parser.ParseFile(token.NewFileSet(), filepath.Join(root, "test/simulate/sim/rule.go"), nil, parser.SkipObjectResolution)
	if err != nil {
		return nil, err
	}
	var rules []string
	ast.Inspect(file, func(n ast.Node) bool {
		if text, is := n.(*ast.BasicLit); is && text.Kind == token.STRING {
			if rule, err := strconv.Unquote(text.Value); err == nil {
				rules = append(rules, rule)
			}
		}
		return true
	})
	return rules, nil
}
