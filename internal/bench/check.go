package bench

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// Tolerance is by how much of the stored median a figure may be worse: rounds of one figure
// differ by some tenths on a machine that does other things too.
const Tolerance = 0.25

// Comparison is one figure beside the stored one.
type Comparison struct {
	Name          string
	Now, Then     Spread
	Change        float64 // of the median, as a share; above 0 is worse
	Worse, Better bool
}

// Check compares figures with stored ones of the same name. Figures that are not stored are left
// out. Its error names stored figures that were not measured, or says that none is stored.
func Check(now, stored Report) ([]Comparison, error) {
	if len(stored.Figures) == 0 {
		return nil, errNoFigures
	}
	var all []Comparison
	var missing []string
	for _, then := range stored.Figures {
		found := false
		for _, figure := range now.Figures {
			if figure.Name == then.Name {
				all = append(all, comparison(figure, then))
				found = true
				break
			}
		}
		if !found {
			missing = append(missing, then.Name)
		}
	}
	if len(missing) > 0 {
		return all, fmt.Errorf("stored, and not measured: %s", strings.Join(missing, ", "))
	}
	return all, nil
}

func comparison(now, then Figure) Comparison {
	c := Comparison{Name: now.Name, Now: now.Spread, Then: then.Spread, Change: now.Median/then.Median - 1}
	if then.Higher {
		c.Change = then.Median/now.Median - 1
	}
	// Rounded, so that a change of exactly the tolerance is within it.
	c.Worse, c.Better = c.Change > Tolerance+1e-9, c.Change < -Tolerance-1e-9
	return c
}

// notStored names the figures that would be stored, and that no comparison is about.
func notStored(now Report, all []Comparison) []string {
	var names []string
	for _, figure := range now.Stored().Figures {
		if !slices.ContainsFunc(all, func(c Comparison) bool { return c.Name == figure.Name }) {
			names = append(names, figure.Name)
		}
	}
	return names
}

// elsewhere says that ratios are from another machine than stored ones; empty if they are not.
func (p Provenance) elsewhere(stored Provenance) string {
	if p.Machine == stored.Machine && p.Processors == stored.Processors {
		return ""
	}
	return fmt.Sprintf("This is another machine, %s, %d processors: the likely reason if a figure is worse. Store the ratios of an older Windlass here, and compare with them.",
		p.Machine, p.Processors)
}

// CheckTable is what Check compared as text, and whether nothing is worse.
func CheckTable(all []Comparison, now, stored Report) (text string, ok bool) {
	var b strings.Builder
	ok = true
	width := 0
	for _, c := range all {
		width = max(width, len(c.Name))
	}
	then := stored.Provenance
	fmt.Fprintf(&b, "stored on %s by %s: Windlass %s, %s, %s, %d processors\n",
		then.Date.UTC().Format(time.DateOnly), then.Command, then.Windlass, then.Go, then.Machine, then.Processors)
	if elsewhere := now.Provenance.elsewhere(then); elsewhere != "" {
		fmt.Fprintln(&b, elsewhere)
	}
	fmt.Fprintf(&b, "%-*s  %8s  %8s  %8s\n", width, "figure", "stored", "now", "worse by")
	for _, c := range all {
		verdict := ""
		switch {
		case c.Worse:
			verdict, ok = fmt.Sprintf("  WORSE than %.0f %% allow", Tolerance*100), false
		case c.Better:
			verdict = "  better: store it again"
		}
		fmt.Fprintf(&b, "%-*s  %8s  %8s  %6.0f %%%s\n", width, c.Name, number(c.Then.Median), number(c.Now.Median), c.Change*100, verdict)
	}
	for _, name := range notStored(now, all) {
		fmt.Fprintf(&b, "not stored: %s\n", name)
	}
	return b.String(), ok
}
