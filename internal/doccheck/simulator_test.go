package doccheck

import (
	"math"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
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

// figuresOf are the figures of an experiment in docs/results, by name.
func figuresOf(t *testing.T, experiment string) map[string]float64 {
	t.Helper()
	figures := map[string]float64{}
	row := regexp.MustCompile("(?m)^\\| " + experiment + " \\| `(\\w+)` \\| ([^ ]+) \\|")
	for _, found := range row.FindAllStringSubmatch(read(t, filepath.Join(root, "docs/results/figures.md")), -1) {
		value, err := strconv.ParseFloat(found[2], 64)
		if err != nil {
			t.Fatal(err)
		}
		figures[found[1]] = value
	}
	return figures
}

// The page on lent pulls has the figures of the record.
func TestCostOfGatewaysIsThatOfTheRecord(t *testing.T) {
	const page = "docs/design/0039-lent-pulls.md"
	text, figures := read(t, filepath.Join(root, page)), figuresOf(t, "gateways")
	for title, names := range map[string][]string{
		"`fig3` throughput; set-up time":           {"fig3_throughput", "fig3_set_up"},
		"`fig4` throughput; set-up time":           {"fig4_throughput", "fig4_set_up"},
		"`fig5` throughput; p99 wait":              {"fig5_throughput", "fig5_wait_p99"},
		"`fig6` throughput with 2 workers; with 8": {"fig6_throughput_of_2_workers", "fig6_throughput_of_8_workers"},
		"`burst` instances created; p99 wait":      {"burst_created", "burst_wait_p99"},
		"`azure` cold calls; GB-hours":             {"azure_cold_calls", "azure_gb_hours"},
	} {
		_, row, found := strings.Cut(text, "| "+title+" | ")
		row, _, _ = strings.Cut(row, " |\n")
		cells := strings.Split(row, " | ")
		if !found || len(cells) != 3 {
			t.Errorf("%s has no row %q with three cells", page, title)
			continue
		}
		for i, gateways := range []string{"1_gateway", "3_gateways", "10_gateways"} {
			for k, said := range strings.Split(cells[i], "; ") {
				name := names[k] + "_" + gateways
				if value, err := strconv.ParseFloat(said, 64); err != nil || math.Abs(value-figures[name]) > .0051 {
					t.Errorf("%s says %s for %s, and the record %v", page, said, name, figures[name])
				}
			}
		}
	}
}
