package main

import (
	"fmt"
	"io"

	"github.com/windlass-dev/windlass/pkg/sim"
)

// catchMutants breaks each rule in turn and prints which seed notices.
func catchMutants(out io.Writer, first, seeds uint64) error {
	all := sim.Mutations()
	caught := 0
	for _, mutation := range all {
		seed, violation, err := catchMutant(mutation, first, seeds)
		switch {
		case err != nil:
			return err
		case violation == nil:
			fmt.Fprintf(out, "mutant_%s=missed\n", mutation)
		default:
			caught++
			fmt.Fprintf(out, "mutant_%s=%d %s\n", mutation, seed-first+1, violation.Rule)
		}
	}
	fmt.Fprintf(out, "mutants_caught=%d/%d\n", caught, len(all))
	if caught < len(all) {
		return fmt.Errorf("%d mutants were not caught within %d seeds", len(all)-caught, seeds)
	}
	return nil
}

func catchMutant(mutation sim.Mutation, first, seeds uint64) (uint64, *sim.Violation, error) {
	for seed := first; seed < first+seeds; seed++ {
		config := sim.Default(seed)
		config.Mutation = mutation
		if result, err := sim.Run(config, nil); err != nil || result.Violation != nil {
			return seed, result.Violation, err
		}
	}
	return 0, nil, nil
}
