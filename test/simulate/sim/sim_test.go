package sim

import (
	"flag"
	"fmt"
	"hash/fnv"
	"strings"
	"sync"
	"testing"
	"time"
)

var manySeeds = flag.Uint64("seeds", 0, "how many seeds to simulate; 0 is as many as a unit test has time for")

func simulate(t testing.TB, config Config) Result {
	t.Helper()
	result, err := Run(config, nil)
	if err != nil {
		t.Fatal(err)
	}
	return result
}

// forSeeds runs check for the seeds from 1 on, two at a time.
func forSeeds(seeds uint64, check func(seed uint64)) {
	const workers = 2
	var running sync.WaitGroup
	for first := range uint64(workers) {
		running.Go(func() {
			for seed := 1 + first; seed <= seeds; seed += workers {
				check(seed)
			}
		})
	}
	running.Wait()
}

func TestPromisesHoldUnderFaults(t *testing.T) {
	seeds := *manySeeds
	if seeds == 0 {
		seeds = usualSeeds
	}
	var mu sync.Mutex
	var total Counts
	forSeeds(seeds, func(seed uint64) {
		result, err := Run(Default(seed), nil)
		mu.Lock()
		defer mu.Unlock()
		if err != nil || result.Violation != nil {
			t.Errorf("seed %d: %v, error %v; replay: go run ./test/simulate -seed %d -trace", seed, result.Violation, err, seed)
		}
		total.Add(result.Counts)
	})
	if kinds := len(faults) + len(asideFaults); len(total.Faults) != kinds {
		t.Errorf("of %d kinds of faults only %d struck: %v", kinds, len(total.Faults), total.Faults)
	}
	// Most calls of a burst are refused, as they should be.
	if planned := int(seeds) * Default(1).Invocations; total.OK*10 < planned*7 {
		t.Errorf("only %d invocations had a good answer, and %d were planned: the faults leave nothing to look at", total.OK, planned)
	}
	if total.GivenUp*500 < total.ByLoan {
		t.Errorf("only %d of %d calls by loans were given up: nothing tests late binding", total.GivenUp, total.ByLoan)
	}
	if total.ByLoan*3 < total.Executions {
		t.Errorf("only %d of %d executions had no ticket: nothing tests loans", total.ByLoan, total.Executions)
	}
	if total.Alone < int(seeds) {
		t.Errorf("only %d calls were answered while there was no scheduler", total.Alone)
	}
	t.Logf("seeds=%d invocations=%d executions=%d by_loan=%d without_schedulers=%d answered_ok=%d no=%d maybe=%d", seeds,
		total.Invocations, total.Executions, total.ByLoan, total.Alone, total.OK, total.No, total.Maybe)
}

func TestTheSameSeedIsTheSameSimulation(t *testing.T) {
	trace := func(seed uint64) (string, Result) {
		lines := fnv.New128a()
		result, err := Run(Default(seed), func(line string) { _, _ = fmt.Fprintln(lines, line) })
		if err != nil {
			t.Fatal(err)
		}
		return fmt.Sprintf("%x", lines.Sum(nil)), result
	}
	seen := make(map[string]uint64)
	for seed := uint64(1); seed <= 12; seed++ {
		first, result := trace(seed)
		second, again := trace(seed)
		if first != second || result.Hash != again.Hash {
			t.Errorf("two runs of seed %d have the traces %s and %s", seed, first, second)
		}
		if untraced := simulate(t, Default(seed)); untraced.Hash != result.Hash {
			t.Errorf("seed %d goes another way when it is traced", seed)
		}
		if other, known := seen[first]; known {
			t.Errorf("seeds %d and %d are one simulation", other, seed)
		}
		seen[first] = seed
	}
}

func TestWithoutFaultsNothingFails(t *testing.T) {
	for seed := uint64(1); seed <= 20; seed++ {
		config := Default(seed)
		config.Faults, config.Adversarial = 0, false
		config.Workers, config.Cores = 3, 8 // where room is short, calls may wait for too long
		limited := 0
		result, err := Run(config, func(line string) {
			if strings.Contains(line, "refuses a call: ConcurrencyLimited") || strings.Contains(line, "refuses a call: RateLimited") {
				limited++
			}
		})
		if err != nil || result.Violation != nil {
			t.Errorf("seed %d: %v, %v", seed, err, result.Violation)
		}
		if result.Counts.No > limited {
			t.Errorf("seed %d: %d invocations were not run, and the limits of functions refused %d", seed, result.Counts.No, limited)
		}
	}
}

func TestConfigIsValidated(t *testing.T) {
	if err := Default(1).Validate(); err != nil {
		t.Error(err)
	}
	for name, discard := range map[string]func(*Config){
		"gateways":    func(c *Config) { c.Gateways = 0 },
		"schedulers":  func(c *Config) { c.Schedulers = 17 },
		"workers":     func(c *Config) { c.Workers = 0 },
		"cores":       func(c *Config) { c.Cores = 1 },
		"functions":   func(c *Config) { c.Functions = -1 },
		"instances":   func(c *Config) { c.MaxInstances = 0 },
		"invocations": func(c *Config) { c.Invocations = 0 },
		"faults":      func(c *Config) { c.Faults = -1 },
		"duration":    func(c *Config) { c.Duration = time.Millisecond },
	} {
		config := Default(1)
		discard(&config)
		if _, err := Run(config, nil); err == nil {
			t.Errorf("%s: an impossible value is accepted", name)
		}
	}
}

func BenchmarkSeed(b *testing.B) {
	for seed := uint64(1); b.Loop(); seed++ {
		simulate(b, Default(seed))
	}
}
