package main

import (
	"encoding/csv"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"time"
)

const (
	hybridFile = "hybrid_azure_2min_12442.csv"
	// hybridCalls are drawn from the recorded ones, and their processor times divided by
	// hybridDivisor. hybridLoad is the load of the recorded ones on their 50 cores, and remains.
	hybridCalls   = 500
	hybridDivisor = 25
	hybridLoad    = 1.84
	hybridLength  = 2 * time.Minute
	// hybridInstances of each function are all that there are: calls beyond wait for one.
	hybridInstances = 4
)

// hybrid is calls of the hybrid scheduler's workload, drawn by a seed from its record.
func hybrid(folder string, seed uint64) (trace, error) {
	file, err := os.Open(filepath.Join(folder, hybridFile))
	if err != nil {
		return trace{}, fmt.Errorf("the trace hybrid is drawn from a record: %w; name its folder with -data", err)
	}
	defer file.Close()
	rows, err := csv.NewReader(file).ReadAll()
	if err != nil || len(rows) <= hybridCalls {
		return trace{}, errors.Join(fmt.Errorf("%s has %d lines", hybridFile, len(rows)), err)
	}
	at, class, work := slices.Index(rows[0], "observed_arrival_s"), slices.Index(rows[0], "fib_n"), slices.Index(rows[0], "cpu_ms_q1_of_14_runs")
	if min(at, class, work) < 0 {
		return trace{}, fmt.Errorf("%s lacks a column", hybridFile)
	}
	rows = rows[1:]
	rng := rand.New(rand.NewPCG(seed, 17))
	rng.Shuffle(len(rows), func(i, j int) { rows[i], rows[j] = rows[j], rows[i] })
	t := trace{instances: map[string]int{}}
	for _, row := range rows[:hybridCalls] {
		arrival, err := strconv.ParseFloat(row[at], 64)
		ms, err2 := strconv.ParseFloat(row[work], 64)
		if err = errors.Join(err, err2); err != nil {
			return trace{}, err
		}
		name := "fib" + row[class]
		t.instances[name] = hybridInstances
		t.calls = append(t.calls, call{at: seconds(arrival), function: name, class: "all", cpu: seconds(ms / 1000 / hybridDivisor)})
	}
	shorter := t.work().Seconds() / hybridLoad / hybridLength.Seconds()
	for i := range t.calls {
		t.calls[i].at = seconds(t.calls[i].at.Seconds() * shorter)
	}
	slices.SortStableFunc(t.calls, func(a, b call) int { return int(a.at - b.at) })
	return t, nil
}
