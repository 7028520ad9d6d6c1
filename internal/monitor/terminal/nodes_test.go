package terminal

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	tea "charm.land/bubbletea/v2"

	"github.com/windlass-dev/windlass/internal/monitor"
)

func TestAllOfManyNodesCanBeSeen(t *testing.T) {
	p := play(t, monitor.Choice{})
	p.m.view.Nodes = nil
	for n := range 30 {
		p.m.view.Nodes = append(p.m.view.Nodes, monitor.Node{Name: fmt.Sprintf("worker-%02d", n)})
	}
	p.m.view.Nodes[17].Order = &monitor.NodeOrder{Cores: 4, Busy: true}
	p.m.view.Nodes[23].Order = &monitor.NodeOrder{Cores: 4, Busy: true, Waiting: 5}
	p.tell(tea.WindowSizeMsg{Width: 100, Height: 14})
	// shown are the last digits of the nodes on the screen.
	shown := func() (names []string) {
		for line := range strings.Lines(p.screen()) {
			if name, of := strings.CutPrefix(line, "worker-"); of {
				names = append(names, name[:2])
			}
		}
		return names
	}
	for _, step := range []struct {
		key  string
		want []string
		more bool
	}{
		{"tab", []string{"23", "17", "00", "01", "02"}, true},
		{"down", []string{"17", "00", "01", "02", "03"}, true},
		{"up", []string{"23", "17", "00", "01", "02"}, true},
		{"up", []string{"23", "17", "00", "01", "02"}, true},
		{"pgdown", []string{"03", "04", "05", "06", "07"}, true},
		{"end", []string{"24", "25", "26", "27", "28", "29"}, false},
		{"down", []string{"24", "25", "26", "27", "28", "29"}, false},
		{"up", []string{"22", "24", "25", "26", "27"}, true},
		{"g", []string{"23", "17", "00", "01", "02"}, true},
	} {
		p.press(step.key)
		if got := shown(); !slices.Equal(got, step.want) || strings.Contains(p.screen(), " more below") != step.more {
			t.Errorf("after %s the nodes %q are shown, want %q, and more: %t\n%s", step.key, got, step.want, step.more, p.screen())
		}
	}
	p.m.view.Nodes = p.m.view.Nodes[:2]
	p.press("end")
	if got := shown(); len(got) != 2 {
		t.Errorf("of two that are left %q are shown", got)
	}
}
