package experiments

import (
	"fmt"
	"io/fs"
	"time"

	"github.com/windlass-dev/windlass/internal/sim/report"
)

// Size says how much of an experiment is run.
type Size struct {
	// Seeds is how often each cell is run, at least 1.
	Seeds int
	// Scale is the factor on calls or time, more than 0 and at most 1.
	Scale float64
	// Sparse leaves cells out.
	Sparse bool
}

// Options are what an experiment is run with.
type Options struct {
	Size
	// Seed is the first seed.
	Seed uint64
	// Data has recorded traces; nil if there are none.
	Data fs.FS
	// Each calls do with 0 to n-1, in any order and at the same time if it
	// likes, and returns when all have returned. Nil means one after the other.
	Each func(n int, do func(i int))
	// Measure tells how long do took on this machine and how much memory it used
	// at most, in bytes; nil if nobody asks.
	Measure func(do func()) (took time.Duration, memory uint64)
}

// Experiment is one experiment.
type Experiment struct {
	Name string
	// Summary says in a few words what it shows.
	Summary string
	// NeedsData says that it replays recorded traces.
	NeedsData bool
	// Full and Quick are its sizes.
	Full, Quick Size

	run func(Options) (report.Report, error)
}

// All are the experiments, in the order in which they are read.
func All() []Experiment {
	return []Experiment{fig3, fig4, fig5, fig6, burst, azure, scaleExperiment}
}

// ByName finds an experiment.
func ByName(name string) (Experiment, bool) {
	for _, e := range All() {
		if e.Name == name {
			return e, true
		}
	}
	return Experiment{}, false
}

// Run runs the experiment.
func (e Experiment) Run(o Options) (report.Report, error) {
	if o.Seeds < 1 {
		return report.Report{}, fmt.Errorf("experiments: Seeds is %d; it must be at least 1", o.Seeds)
	}
	if !(o.Scale > 0 && o.Scale <= 1) {
		return report.Report{}, fmt.Errorf("experiments: Scale is %g; it must be more than 0 and at most 1", o.Scale)
	}
	if o.Each == nil {
		o.Each = func(n int, do func(int)) {
			for i := range n {
				do(i)
			}
		}
	}
	r, err := e.run(o)
	r.Name, r.Seed, r.Seeds, r.Scale = e.Name, o.Seed, o.Seeds, o.Scale
	return r, err
}

// length is a duration at the options' scale.
func (o Options) length(full time.Duration) time.Duration {
	return time.Duration(float64(full) * o.Scale)
}

// scaled is a number of calls at the options' scale, at least 1.
func (o Options) scaled(full int) int { return max(1, int(float64(full)*o.Scale)) }
