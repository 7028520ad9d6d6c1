package experiments

import (
	"fmt"
	"io/fs"
	"time"

	"github.com/windlass-dev/windlass/internal/sim/report"
)

// Size is how much of an experiment to run.
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
	// Gateways is to how many gateways calls come; 0 for one queue at the scheduler.
	Gateways int
	// reportEvery is how often gateways report; 0 is what the product has.
	reportEvery time.Duration
	// Data has recorded traces; nil for none.
	Data fs.FS
	// Each calls do with 0 to n-1, in any order and concurrently if it chooses, and returns
	// when all calls have returned. nil means one after the other.
	Each func(n int, do func(i int))
	// Measure returns how long do took on this machine and its peak memory in bytes; nil
	// measures nothing.
	Measure func(do func()) (took time.Duration, memory uint64)
}

// Experiment is one experiment.
type Experiment struct {
	Name string
	// Summary describes it in a few words.
	Summary string
	// NeedsData says that it replays recorded traces.
	NeedsData bool
	// NeedsFile is the file of Data that it replays, if it is always the same.
	NeedsFile string
	// CountsGateways says that it compares numbers of gateways itself, or has none, so that
	// Options.Gateways must be 0.
	CountsGateways bool
	// Full and Quick are its sizes.
	Full, Quick Size

	run func(Options) (report.Report, error)
}

// All returns the experiments in reading order.
func All() []Experiment {
	return []Experiment{fig3, fig4, fig5, fig6, burst, azure, sfs, hybrid, callOrder, fewCores, coLocation, gatewaysExperiment, scaleExperiment}
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
	if o.Gateways < 0 || o.Gateways > 0 && e.CountsGateways {
		return report.Report{}, fmt.Errorf("experiments: Gateways is %d; it must be at least 0, and 0 for %s if that compares numbers of gateways itself or has none", o.Gateways, e.Name)
	}
	if o.Each == nil {
		o.Each = func(n int, do func(int)) {
			for i := range n {
				do(i)
			}
		}
	}
	r, err := e.run(o)
	if o.Gateways > 0 {
		r.Parameters = append(r.Parameters, gatewayParameters(o.Gateways)...)
	}
	r.Name, r.Seed, r.Seeds, r.Scale = e.Name, o.Seed, o.Seeds, o.Scale
	return r, err
}

// length is a duration at the options' scale.
func (o Options) length(full time.Duration) time.Duration {
	return time.Duration(float64(full) * o.Scale)
}

// scaled is a number of calls at the options' scale, at least 1.
func (o Options) scaled(full int) int { return max(1, int(float64(full)*o.Scale)) }
