package main

import (
	"context"
	"time"

	"github.com/windlass-dev/windlass/test/faults/verdict"
)

// row is one fault and what is promised in spite of it.
type row struct {
	// id is that of the fault matrix in docs/reliability.md.
	id, fault, promise string
	// rate is how many calls begin in a second while the fault lasts; 0 is that of
	// the command line.
	rate float64
	// load says who calls where calls do not begin at a rate.
	load string
	// allow is what the fault may cost.
	allow verdict.Allowance
	// run puts the fault upon the scene and takes it back. An error is
	// something else than a broken promise of a call.
	run func(ctx context.Context, s *faultEnv) error
}

// chapter is the rows of one subject.
type chapter struct {
	title string
	rows  []row
}

// chapters are all rows, as reliability.md has them.
func chapters() []chapter {
	return []chapter{
		{"Programs of Windlass", processRows()},
		{"Lent pulls", loanRows()},
		{"Instances and functions", instanceRows()},
		{"etcd", etcdRows()},
		{"The network", networkRows()},
		{"The machine", machineRows()},
		{"Kubernetes", kubernetesRows()},
		{"Callers", loadRows()},
	}
}

// table is every row, by chapter.
func table() []row {
	var all []row
	for _, c := range chapters() {
		all = append(all, c.rows...)
	}
	return all
}

// testTimeout is how long a caller waits: as long as a call may wait in a queue, as
// long as the lab's functions may take, and a second.
const testTimeout = time.Minute + functionTimeout + time.Second

// nothing is allowed: every call succeeds.
func nothing() verdict.Allowance { return verdict.Allowance{Patience: testTimeout} }

// anything that is true may be said, as often as need be.
func anything() verdict.Allowance {
	return verdict.Allowance{Patience: testTimeout, Maybe: verdict.Any, No: verdict.Any, Broken: verdict.Any}
}

// maybes allows so many calls to end with "maybe".
func maybes(n int) verdict.Allowance { return verdict.Allowance{Patience: testTimeout, Maybe: n} }

// refusals allows any number of calls to be refused with "no".
func refusals() verdict.Allowance { return verdict.Allowance{Patience: testTimeout, No: verdict.Any} }
