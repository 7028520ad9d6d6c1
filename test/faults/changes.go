package main

import (
	"fmt"
	"slices"
	"strings"
)

// change is what some rows could not show in rounds before a day.
type change struct {
	// on is the day, as rounds have it.
	on   string
	rows []string
	was  string
}

// changes are those after which stored rounds say less of a row than the table does now.
func changes() []change {
	return []change{
		{
			on: "2026-11-29", was: "of the calls that show that all works again, and of executions after the end of a row, nothing was held against Windlass",
		},
		{
			on: "2026-11-29", rows: []string{"F7", "F7b", "F7c", "F23"},
			was: "agents were picked at random, so few of them ran a call when they were hit",
		},
		{
			on: "2026-11-29", rows: []string{"F1", "F1b"},
			was: "connections might also break at the other gateway",
		},
		{
			on: "2026-11-29", rows: []string{"F9", "F9b", "F9c", "F10", "F13", "F14"},
			was: "calls had to fail, and nobody looked whether with the status that the row names, or whether F14's agent had crashed",
		},
		{
			on: "2026-11-29", rows: []string{"F102"},
			was: "any number of calls might end with maybe",
		},
		{
			on: "2026-11-29", rows: []string{"F52"},
			was: "the lab no longer saw slots move once F33 had run, so that it counted none",
		},
		{
			on: "2026-11-29", rows: []string{"F73"},
			was: "the function had no limit and 200 callers that waited for their answers, so no call was refused",
		},
	}
}

// unseen says what of the table the rounds cannot show.
func unseen(rounds []round, all []change) string {
	var b strings.Builder
	for _, c := range all {
		if !slices.ContainsFunc(rounds, func(r round) bool { return r.Date < c.on && r.has(c.rows) }) {
			continue
		}
		of := "All rows"
		if len(c.rows) > 0 {
			of = strings.Join(c.rows, ", ")
		}
		fmt.Fprintf(&b, "- %s, before %s: %s.\n", of, c.on, c.was)
	}
	if b.Len() == 0 {
		return ""
	}
	return "\n## What these rounds do not show\n\nThe lab was less strict when some of them ran:\n\n" + b.String()
}

// has says whether the round ran one of these rows. None is any row.
func (r *round) has(rows []string) bool {
	return len(rows) == 0 || slices.ContainsFunc(r.Rows, func(in record) bool { return slices.Contains(rows, in.Row) })
}
