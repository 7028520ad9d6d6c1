package doccheck

import (
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/windlass-dev/windlass/internal/sim/experiments"
)

var quoted = regexp.MustCompile("`([a-z0-9]+)`")

// The simulator's page names the experiments that refuse --gateways.
func TestPageNamesExperimentsWithoutGateways(t *testing.T) {
	const page = "docs/simulator.md"
	_, row, _ := strings.Cut(read(t, filepath.Join(root, page)), "| `--gateways N` |")
	row, _, _ = strings.Cut(row, "\n")
	var named, refuse []string
	for _, name := range quoted.FindAllStringSubmatch(row, -1) {
		if name[1] != "all" {
			named = append(named, name[1])
		}
	}
	for _, e := range experiments.All() {
		if e.CountsGateways {
			refuse = append(refuse, e.Name)
		}
	}
	if !slices.Equal(named, refuse) {
		t.Errorf("%s names %v as those that refuse --gateways; these do: %v", page, named, refuse)
	}
}
