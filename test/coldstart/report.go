package main

import (
	"fmt"
	"io"
	"strings"
	"time"
)

// report prints the quantiles of every phase, and whether the goals were reached. Its error names goals
// that were missed.
func report(out io.Writer, all []marks) error {
	var names []string
	implausible := 0
	ours, took := map[string]bool{}, map[string][]time.Duration{}
	var totals, sums []time.Duration
	for _, m := range all {
		list, err := m.phases()
		if err != nil {
			implausible++
		}
		names = names[:0]
		for _, s := range list {
			names = append(names, s.name)
			ours[s.name] = s.ours
			if s.known {
				took[s.name] = append(took[s.name], s.took)
			}
		}
		totals = append(totals, m.total())
		if whole, known := sum(list); known {
			sums = append(sums, whole-m.total())
		}
	}
	fmt.Fprintf(out, "runs=%d\n", len(all))
	printQuantiles(out, "total", totals)
	slow, unknown, unseen := []string{}, []string{}, false
	for _, name := range names {
		// A phase counts only if it was seen in every run.
		if len(took[name]) < len(all) {
			fmt.Fprintf(out, "%s_median_ms=unknown\n%s_p90_ms=unknown\n", name, name)
			unknown = append(unknown, name)
			unseen = unseen || ours[name]
			continue
		}
		printQuantiles(out, name, took[name])
		if ours[name] && quantile(took[name], 0.5) > goalOurs {
			slow = append(slow, name)
		}
	}
	if len(sums) == len(all) {
		fmt.Fprintf(out, "phases_minus_total_ms=%.1f\n", ms(quantile(sums, 1)))
	} else {
		fmt.Fprintln(out, "phases_minus_total_ms=unknown")
	}
	fmt.Fprintf(out, "unknown=%s\n", strings.Join(unknown, ","))
	fmt.Fprintf(out, "implausible=%d\n", implausible)
	goals := []goal{
		{"goal_total_below_1500ms", quantile(totals, 0.5) >= goalTotal, false},
		{"goal_ours_below_100ms", len(slow) > 0, unseen},
	}
	var missed []string
	for _, g := range goals {
		fmt.Fprintf(out, "%s=%s\n", g.name, g)
		if g.missed {
			missed = append(missed, g.name)
		}
	}
	fmt.Fprintf(out, "ours_above_100ms=%s\n", strings.Join(slow, ","))
	if len(missed) > 0 {
		return fmt.Errorf("goals were missed: %s", strings.Join(missed, ", "))
	}
	return nil
}

// goal is whether something was fast enough.
type goal struct {
	name string
	// missed is what was seen; unseen says that a part was not.
	missed, unseen bool
}

// String is true or false, or unknown if what was not seen may have been slow.
func (g goal) String() string {
	switch {
	case g.missed:
		return "false"
	case g.unseen:
		return "unknown"
	}
	return "true"
}

func printQuantiles(out io.Writer, name string, took []time.Duration) {
	fmt.Fprintf(out, "%s_median_ms=%.1f\n%s_p90_ms=%.1f\n", name, ms(quantile(took, 0.5)), name, ms(quantile(took, 0.9)))
}

func ms(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }
