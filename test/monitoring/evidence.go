package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/windlass-dev/windlass/test/monitoring/prometheus"
)

// evidence is what has had data: queries, and series by name.
type evidence struct {
	Queries, Names map[string]bool
}

// evidenceFile is where one part leaves its evidence for the next.
const evidenceFile = "evidence.json"

func readEvidence(dir string) (evidence, error) {
	e := evidence{Queries: map[string]bool{}, Names: map[string]bool{}}
	text, err := os.ReadFile(filepath.Join(dir, evidenceFile))
	if errors.Is(err, fs.ErrNotExist) {
		return e, nil
	}
	if err != nil {
		return e, err
	}
	return e, json.Unmarshal(text, &e)
}

func (e evidence) write(dir string) error {
	text, err := json.Marshal(e)
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(dir, evidenceFile), text, 0o600)
}

// span is a time that a Prometheus has watched.
type span struct {
	server   *prometheus.Server
	from, to time.Time
	// functions are the names of some that were called.
	functions []string
}

// step is how far apart the moments are at which a query is asked.
const step = 2 * time.Second

// hasData says whether an expression had a value at any time, on which NaN is none.
func (s span) hasData(ctx context.Context, expr string) (bool, error) {
	all, err := s.server.Range(ctx, expr, s.from, s.to, step)
	for _, series := range all {
		for _, value := range series.Points {
			if !math.IsNaN(float64(value)) {
				return true, err
			}
		}
	}
	return false, err
}

// gather asks all questions that have no answer yet, and returns those that
// Prometheus could not understand.
func (e evidence) gather(ctx context.Context, s span, questions []question) (faults []string) {
	for _, q := range questions {
		if e.Queries[q.key()] {
			continue
		}
		for _, function := range append([]string{".+"}, s.functions...) {
			expr, err := q.Replace(q.values(function))
			if err == nil {
				e.Queries[q.key()], err = s.hasData(ctx, expr)
			}
			if err != nil {
				faults = append(faults, fmt.Sprintf("%s: %v: %s", q, err, expr))
			}
			if err != nil || e.Queries[q.key()] {
				break
			}
		}
	}
	for name := range namesIn(questions) {
		if e.Names[name] {
			continue
		}
		seen, err := s.hasData(ctx, fmt.Sprintf("count({__name__=%q})", name))
		if err != nil {
			faults = append(faults, err.Error())
		}
		e.Names[name] = seen
	}
	return faults
}

// missing prints what has had no data so far, and returns how many those are.
// Series are left out that are said to be quiet until something happens.
func (e evidence) missing(out io.Writer, questions []question, quiet silencedQueries) (n int) {
	for _, name := range slices.Sorted(maps.Keys(namesIn(questions))) {
		if !e.Names[name] && !quiet.allows(name) {
			n++
			fmt.Fprintf(out, "      no series %s has been seen\n", name)
		}
	}
	for _, q := range questions {
		if !e.Queries[q.key()] && !slices.ContainsFunc(slices.Collect(maps.Keys(namesIn([]question{q}))), quiet.allows) {
			n++
			fmt.Fprintf(out, "      no data: %s: %s\n", q, strings.Join(strings.Fields(q.Expr), " "))
		}
	}
	return n
}

// summary prints how much has had data.
func (e evidence) summary(out io.Writer, questions []question) {
	with := 0
	for _, q := range questions {
		if e.Queries[q.key()] {
			with++
		}
	}
	names := namesIn(questions)
	seen := 0
	for name := range names {
		if e.Names[name] {
			seen++
		}
	}
	fmt.Fprintf(out, "queries=%d queries_with_data=%d series_named=%d series_seen=%d\n", len(questions), with, len(names), seen)
}
