package main

import (
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
)

// chosen are the rows that the command line names, in the table's order.
func (o options) chosen() ([]row, error) {
	return choose(table(), o.rows)
}

// choose takes from all rows those whose ids a list names; a range names all
// between its two numbers, and a number those with a letter behind it too. An
// empty list names all.
func choose(all []row, list string) ([]row, error) {
	if list == "" {
		return all, nil
	}
	var chosen []row
	names := strings.Split(list, ",")
	used := make([]bool, len(names))
	for _, r := range all {
		meant := false
		for i, name := range names {
			if named(name, r.id) {
				meant, used[i] = true, true
			}
		}
		if meant {
			chosen = append(chosen, r)
		}
	}
	if i := slices.Index(used, false); i >= 0 {
		return nil, fmt.Errorf("-rows: no row is named %q: see -list", names[i])
	}
	return chosen, nil
}

// named says whether one element of a list names a row.
func named(name, id string) bool {
	if name == id || name == strings.TrimRight(id, "abcdefgh") {
		return true
	}
	from, to, isRange := strings.Cut(name, "-")
	if !isRange {
		return false
	}
	n, low, high := number(id), number(from), number(to)
	return low <= n && n <= high
}

// number is the number in an id such as F48b; -1 if there is none.
func number(id string) int {
	n, err := strconv.Atoi(strings.Trim(id, "Fabcdefgh"))
	if err != nil {
		return -1
	}
	return n
}

// shared are the rows of one of several labs, as in "0/2" for the first of two. An
// empty share is all.
func shared(rows []row, which string) []row {
	var mine, of int
	if n, _ := fmt.Sscanf(which, "%d/%d", &mine, &of); n != 2 || of < 1 {
		return rows
	}
	var chosen []row
	for i, r := range rows {
		if i%of == mine {
			chosen = append(chosen, r)
		}
	}
	return chosen
}

// list prints the rows as docs/reliability.md has them.
func list(out io.Writer) {
	for _, r := range table() {
		fmt.Fprintln(out, r.documented())
	}
}

// documented is the row's line in docs/reliability.md.
func (r row) documented() string {
	return fmt.Sprintf("| %s | %s | %s | %s |", r.id, r.fault, r.promise, r.callers())
}
