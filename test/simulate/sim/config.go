package sim

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"time"
)

// Config is one simulation.
type Config struct {
	// Seed decides everything that is left to chance.
	Seed uint64
	// Gateways, Schedulers and Workers are how many machines of each kind
	// there are, at least 1 and at most 16. Workers run the instances.
	Gateways, Schedulers, Workers int
	// Cores is how much instances may request of each worker, at least 2: every third
	// function's request one, and the others' two; all request one if there is a warm pool.
	Cores int
	// Spares is how many spare instances there are in the warm pool of one namespace, 0 for
	// no pool. They request one core each.
	Spares int
	// Functions is how many functions are called, and MaxInstances how many
	// instances each may have, both at least 1.
	Functions, MaxInstances int
	// Invocations is how many calls arrive while there are faults, at least 1.
	Invocations int
	// Faults is how many faults there are, 0 or more.
	Faults int
	// Duration is the time in which calls and faults come, at least 1 s, and
	// Settling the time after it in which everything must come to rest.
	Duration, Settling time.Duration
	// Adversarial also duplicates, delays and loses offers, cancellations, refusals
	// and tickets within their streams, which TCP never does. Then only what is
	// promised of calls is checked, for who does not get the reply that it waits
	// for does not ask again.
	Adversarial bool
	// Mood is which kinds of faults go together, by its index in moods; what is beyond is no mood.
	Mood int
	// Decider and Limit are those of the first function, by their numbers: the others have the next ones
	// in turn.
	Decider, Limit int
	// Impatient says that most clients leave before they must.
	Impatient bool
}

// Default is the simulation of a seed as `make sim` runs it. Seeds differ in how
// many machines there are, in whether these have room for all the instances that there
// may be, and in what goes wrong, and how much. Each of these is drawn, so that all of them meet.
func Default(seed uint64) Config {
	r := rand.New(rand.NewPCG(seed, 0xc0f))
	c := Config{
		Seed: seed, Gateways: 1 + r.IntN(3), Schedulers: 1 + r.IntN(4), Workers: 3, Cores: 8, Functions: 3, MaxInstances: 3,
		Invocations: 200, Faults: 5 + r.IntN(16), Duration: 20 * time.Second, Settling: time.Minute,
		Adversarial: r.IntN(8) == 0, Spares: r.IntN(3),
		Mood: r.IntN(len(moods) + moodless), Decider: r.IntN(len(deciders)), Limit: r.IntN(limitKinds), Impatient: r.IntN(5) == 0,
	}
	switch r.IntN(4) {
	case 0: // not even one instance of each function has room, unless all request one core
		c.Workers, c.Cores = 2, 2
	case 1: // there is not room for all that they may have
		c.Cores = 2
	}
	return c
}

// Hard is a simulation in which more machines meet more faults than anybody would
// want to see: what it finds, Default finds in more seeds.
func Hard(seed uint64) Config {
	c := Default(seed)
	c.Gateways, c.Schedulers, c.Faults, c.Invocations, c.Duration = 4, 5, 60, 400, 30*time.Second
	return c
}

// Validate says what is wrong with the numbers.
func (c Config) Validate() error {
	between := func(name string, n, least, most int) error {
		if n < least || n > most {
			return fmt.Errorf("sim: %s is %d; it must be from %d to %d", name, n, least, most)
		}
		return nil
	}
	var durations error
	if c.Duration < time.Second || c.Settling < 0 {
		durations = errors.New("sim: Duration must be 1s or more, and Settling not negative")
	}
	return errors.Join(
		between("Gateways", c.Gateways, 1, 16), between("Schedulers", c.Schedulers, 1, 16),
		between("Workers", c.Workers, 1, 16), between("Cores", c.Cores, 2, 1024),
		between("Spares", c.Spares, 0, 64), between("Functions", c.Functions, 1, 64),
		between("MaxInstances", c.MaxInstances, 1, 64), between("Invocations", c.Invocations, 1, 1<<20),
		between("Faults", c.Faults, 0, 1<<20), between("Mood", c.Mood, 0, len(moods)+moodless-1),
		between("Decider", c.Decider, 0, len(deciders)-1), between("Limit", c.Limit, 0, limitKinds-1), durations,
	)
}
