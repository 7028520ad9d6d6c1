package sim

import "testing"

func TestSeedsMeetAllPairsOfCircumstances(t *testing.T) {
	const seeds = 2000
	type circumstance struct {
		name string
		of   func(Config) int
		many int
	}
	room := circumstance{"room", func(c Config) int { return c.Workers*10 + c.Cores }, 3}
	gateways := circumstance{"gateways", func(c Config) int { return c.Gateways }, 3}
	schedulers := circumstance{"schedulers", func(c Config) int { return c.Schedulers }, 4}
	spares := circumstance{"spares", func(c Config) int { return c.Spares }, 3}
	mood := circumstance{"mood", func(c Config) int { return c.Mood }, len(moods) + moodless}
	decider := circumstance{"decider", func(c Config) int { return c.Decider }, len(deciders)}
	limit := circumstance{"limit", func(c Config) int { return c.Limit }, limitKinds}
	adversarial := circumstance{"adversarial", func(c Config) int { return number(c.Adversarial) }, 2}
	impatient := circumstance{"impatient", func(c Config) int { return number(c.Impatient) }, 2}
	all := []circumstance{room, gateways, schedulers, spares, mood, decider, limit, adversarial, impatient}
	for i, a := range all {
		for _, b := range all[:i] {
			pairs := make(map[[2]int]int)
			for seed := uint64(1); seed <= seeds; seed++ {
				c := Default(seed)
				pairs[[2]int{a.of(c), b.of(c)}]++
			}
			if want := a.many * b.many; len(pairs) != want {
				t.Errorf("of %d pairs of %s and %s there are %d in %d seeds", want, a.name, b.name, len(pairs), seeds)
			}
		}
	}
}

func number(b bool) int {
	if b {
		return 1
	}
	return 0
}
