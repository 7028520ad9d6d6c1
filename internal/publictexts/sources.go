package publictexts

import (
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"sigs.k8s.io/yaml"

	"github.com/windlass-dev/windlass/internal/cli"
	"github.com/windlass-dev/windlass/internal/cluster"
	"github.com/windlass-dev/windlass/internal/sim/experiments"
	"github.com/windlass-dev/windlass/pkg/gateway/problems"
)

func metrics(root string) ([]Text, error) { return table(root, "docs/metrics.md", "windlass_") }

func chartValues(root string) ([]Text, error) {
	return table(root, "charts/windlass/README.md", "")
}

// table are the rows of the tables of a generated page that begin with a code span that
// has the prefix: their first cell, and their last.
func table(root, page, prefix string) ([]Text, error) {
	text, err := os.ReadFile(filepath.Join(root, page))
	if err != nil {
		return nil, err
	}
	var texts []Text
	for line := range strings.Lines(string(text)) {
		row := strings.ReplaceAll(strings.TrimSpace(line), `\|`, "\x00")
		if !strings.HasPrefix(row, "| `"+prefix) {
			continue
		}
		cells := strings.Split(strings.Trim(row, "|"), "|")
		last := strings.ReplaceAll(strings.TrimSpace(cells[len(cells)-1]), "\x00", "|")
		texts = append(texts, Text{strings.TrimSpace(cells[0]), last})
	}
	return texts, nil
}

func commands(string) ([]Text, error) {
	var known []cli.Experiment
	var summaries []Text
	for _, e := range experiments.All() {
		known = append(known, cli.Experiment{Name: e.Name, Summary: e.Summary, NeedsData: e.NeedsData, NeedsFile: e.NeedsFile, CountsGateways: e.CountsGateways})
		summaries = append(summaries, Text{"`windlass sim " + e.Name + "`", e.Summary})
	}
	streams := cli.Streams{In: strings.NewReader(""), Out: io.Discard, Err: io.Discard}
	help := ofCommand(cli.NewCommand(streams, cli.Programs{Experiments: known, Roles: cluster.Commands()}))
	return append(help, summaries...), nil
}

// ofCommand are the help of a command and of those below it.
func ofCommand(cmd *cobra.Command) []Text {
	path := cmd.CommandPath()
	texts := []Text{{"`" + path + "`", cmd.Short}, {"`" + path + " --help`", cmd.Long}, {"`" + path + "`, for example", cmd.Example}}
	cmd.LocalFlags().VisitAll(func(f *pflag.Flag) {
		texts = append(texts, Text{"`" + path + " --" + f.Name + "`", f.Usage})
	})
	for _, below := range cmd.Commands() {
		// Cobra writes the help of this one.
		if below.Name() != "completion" {
			texts = append(texts, ofCommand(below)...)
		}
	}
	return slices.DeleteFunc(texts, func(t Text) bool { return t.Text == "" })
}

func problemTypes(string) ([]Text, error) {
	var texts []Text
	for _, t := range problems.All() {
		of := fmt.Sprintf("%d %s", t.Status, t.Reason)
		texts = append(texts, Text{of, t.Title}, Text{of + ", when", t.When}, Text{of + ", what to do", t.Do})
	}
	return texts, nil
}

func alerts(root string) ([]Text, error) {
	var rules struct {
		Groups []struct {
			Rules []struct {
				Alert       string
				Annotations struct{ Summary, Description string }
			}
		}
	}
	if err := readYAML(filepath.Join(root, "charts/windlass/rules/alerts.yaml"), &rules); err != nil {
		return nil, err
	}
	var texts []Text
	for _, g := range rules.Groups {
		for _, r := range g.Rules {
			texts = append(texts, Text{r.Alert, r.Annotations.Summary}, Text{r.Alert + ", description", r.Annotations.Description})
		}
	}
	return texts, nil
}

// dashboards are the descriptions of the Grafana dashboards and of their panels.
func dashboards(root string) ([]Text, error) {
	paths, err := filepath.Glob(filepath.Join(root, "charts/windlass/dashboards/*.json"))
	if err != nil {
		return nil, err
	}
	var texts []Text
	for _, path := range paths {
		var board struct {
			Title, Description string
			Panels             []struct{ Title, Description string }
		}
		if err := readYAML(path, &board); err != nil {
			return nil, err
		}
		texts = append(texts, Text{board.Title, board.Description})
		for _, panel := range board.Panels {
			if panel.Description != "" {
				texts = append(texts, Text{board.Title + ", " + panel.Title, panel.Description})
			}
		}
	}
	return texts, nil
}

// conditionFolders are the packages that write conditions and Events.
var conditionFolders = []string{"api/v1alpha1", "pkg/controller", "pkg/rollout"}

// conditions are the literals of these packages that read as a message: of a condition or
// an Event, about a mistake in a manifest, or in the controller's log.
func conditions(root string) ([]Text, error) {
	var texts []Text
	for _, folder := range conditionFolders {
		files, err := filepath.Glob(filepath.Join(root, folder, "*.go"))
		if err != nil {
			return nil, err
		}
		for _, path := range files {
			if strings.HasSuffix(path, "_test.go") {
				continue
			}
			found, err := literals(path)
			if err != nil {
				return nil, err
			}
			for _, text := range found {
				texts = append(texts, Text{folder + "/" + filepath.Base(path), text})
			}
		}
	}
	return texts, nil
}

// threeWords tells a message from a name, a pattern or an example.
var threeWords = regexp.MustCompile(`(?i)[a-z]+,? [a-z]+,? [a-z]+`)

// literals are the string literals of a Go file that read as a message.
func literals(path string) ([]string, error) {
	file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
	if err != nil {
		return nil, err
	}
	var found []string
	ast.Inspect(file, func(n ast.Node) bool {
		if _, isField := n.(*ast.Field); isField {
			return false
		}
		literal, ok := n.(*ast.BasicLit)
		if !ok || literal.Kind != token.STRING {
			return true
		}
		text, err := strconv.Unquote(literal.Value)
		if err == nil && threeWords.MatchString(text) {
			found = append(found, text)
		}
		return true
	})
	return found, nil
}

func fields(root string) ([]Text, error) {
	files, err := filepath.Glob(filepath.Join(root, "config/crd/*.yaml"))
	if err != nil {
		return nil, err
	}
	var texts []Text
	for _, path := range files {
		var crd struct {
			Spec struct {
				Names    struct{ Kind string }
				Versions any
			}
		}
		if err := readYAML(path, &crd); err != nil {
			return nil, err
		}
		texts = append(texts, described(crd.Spec.Versions, crd.Spec.Names.Kind)...)
	}
	return texts, nil
}

// described are the descriptions of a CRD's fields and columns, and the messages of its
// rules.
func described(at any, path string) []Text {
	var texts []Text
	switch at := at.(type) {
	case []any:
		for _, one := range at {
			texts = append(texts, described(one, path)...)
		}
	case map[string]any:
		for _, key := range []string{"description", "message"} {
			if text, ok := at[key].(string); ok {
				texts = append(texts, Text{path, text})
			}
		}
		for _, key := range slices.Sorted(maps.Keys(at)) {
			texts = append(texts, described(at[key], below(path, key))...)
		}
	}
	return texts
}

// below adds a key of a CRD to a path, if it is a field's name.
func below(path, key string) string {
	switch key {
	case "versions", "schema", "openAPIV3Schema", "properties", "items", "additionalPrinterColumns", "x-kubernetes-validations":
		return path
	}
	return path + "." + key
}

func readYAML(path string, into any) error {
	text, err := os.ReadFile(path)
	if err == nil {
		err = yaml.Unmarshal(text, into)
	}
	if err != nil {
		return errors.Join(errors.New(path), err)
	}
	return nil
}
