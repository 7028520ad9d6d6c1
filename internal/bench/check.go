package bench

import (
	"fmt"
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
// out. Its error names stored figures that were not measured.
func Check(now, stored Report) ([]Comparison, error) {
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

// CheckTable is comparisons as text, and whether none is worse.
func CheckTable(all []Comparison, stored Provenance) (text string, ok bool) {
	var b strings.Builder
	ok = true
	width := 0
	for _, c := range all {
		width = max(width, len(c.Name))
	}
	fmt.Fprintf(&b, "stored on %s by %s: Windlass %s, %s, %s, %d processors\n",
		stored.Date.UTC().Format(time.DateOnly), stored.Command, stored.Windlass, stored.Go, stored.Machine, stored.Processors)
	fmt.Fprintf(&b, "%-*s  %8s  %8s  %8s\n", width, "figure", "stored", "now", "worse by")
	for _, c := range all {
		verdict := ""
		switch {
		case c.Worse:
			verdict, ok = fmt.Sprintf("  WORSE than %.0f %% allow", Tolerance*100), false
		case c.Better:
			verdict = "  better: store it anew"
		}
		fmt.Fprintf(&b, "%-*s  %8s  %8s  %6.0f %%%s\n", width, c.Name, number(c.Then.Median), number(c.Now.Median), c.Change*100, verdict)
	}
	return b.String(), ok
}
