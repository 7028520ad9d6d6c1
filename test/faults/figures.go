package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/windlass-dev/windlass/internal/sleep"
	"github.com/windlass-dev/windlass/test/faults/verdict"
	"github.com/windlass-dev/windlass/test/lab"
)

// figure is one thing that is measured with larger counts.
type figure struct {
	name    string
	measure func(ctx context.Context, r *runner) error
}

func allFigures() []figure {
	return []figure{
		{"kill", stalls("kill_owner", 200, 2*time.Second, owner, killed)},
		{"pause", stalls("pause_owner", 20, 4*time.Second, owner, paused)},
		{"partition", stalls("partition_owner", 20, 4*time.Second, owner, isolated)},
		{"schedulers", withoutAny},
		{"rolling", rolling},
		{"etcd", outages},
		{"ancestors", ancestors},
		{"matrix", matrix},
	}
}

// chooseFigures takes those that a list names; "all" names all.
func chooseFigures(list string) ([]figure, error) {
	all := allFigures()
	if list == "all" {
		return all, nil
	}
	var chosen []figure
	for name := range strings.SplitSeq(list, ",") {
		i := slices.IndexFunc(all, func(f figure) bool { return f.name == name })
		if i < 0 {
			return nil, fmt.Errorf("-figures: no figure is named %q", name)
		}
		chosen = append(chosen, all[i])
	}
	return chosen, nil
}

// figures measures those that the command line names, and prints each as
// name=value. The status is 1 if a promise was broken.
func (r *runner) figures(ctx context.Context) (status int, err error) {
	fmt.Fprintf(r.out, "# fault lab: commit=%s date=%s machine=%q seed=%d scale=%g\n",
		commit(), time.Now().UTC().Format("2006-01-02"), machine(), r.options.seed, r.options.scale)
	chosen, err := chooseFigures(r.options.figures)
	if err != nil {
		return 1, err
	}
	for _, f := range chosen {
		if err := f.measure(ctx, r); err != nil {
			return 1, fmt.Errorf("%s: %w", f.name, err)
		}
	}
	return r.status(), nil
}

// status is that of the command after figures.
func (r *runner) status() int {
	if r.broken {
		return 1
	}
	return 0
}

func commit() string {
	text, err := exec.Command("git", "describe", "--tags", "--always", "--dirty").Output()
	if err != nil {
		return "unknown"
	}
	return strings.TrimSpace(string(text))
}

// machine is the processors and what they are.
func machine() string {
	text, _ := os.ReadFile("/proc/cpuinfo")
	_, model, _ := strings.Cut(string(text), "model name")
	model, _, _ = strings.Cut(strings.TrimLeft(model, "\t :"), "\n")
	return fmt.Sprintf("%d x %s", runtime.NumCPU(), model)
}

// figure prints one figure.
func (r *runner) figure(name, format string, value ...any) {
	fmt.Fprintf(r.out, "faults_%s=%s\n", name, fmt.Sprintf(format, value...))
}

// times is a count at the scale of the command line, at least one.
func (r *runner) times(n int) int { return max(1, int(float64(n)*r.options.scale)) }

// assess judges a figure that was measured and prints its counts.
func (r *runner) assess(ctx context.Context, s *faultEnv, name string, allow verdict.Allowance) error {
	err := s.heal(ctx)
	report, readErr := r.judge(s, allow)
	if err = errors.Join(err, readErr); err != nil {
		return err
	}
	report.Faults = append(report.Faults, r.leaks(ctx)...)
	r.counts(name, report)
	return nil
}

// counts prints those of a figure, and what is held against Windlass.
func (r *runner) counts(name string, report verdict.Report) {
	r.figure(name+"_calls", "%d", report.Calls)
	r.figure(name+"_failed", "%d", report.Calls-report.Succeeded)
	r.figure(name+"_lost", "%d", report.Lost)
	r.figure(name+"_duplicated", "%d", report.Duplicated)
	r.figure(name+"_wrong_no", "%d", report.WrongNo)
	for _, fault := range report.Faults {
		fmt.Fprintf(r.out, "# %s: %s\n", name, fault)
	}
	r.broken = r.broken || !report.Kept()
}

// blow makes a scheduler silent in some way, until undo.
type blow func(ctx context.Context, m *lab.Member) (undo func() error, err error)

// strike gives all of them a blow.
func (hit blow) strike(ctx context.Context, all []*lab.Member) (undo func() error, err error) {
	var undos []func() error
	for _, m := range all {
		undo, struck := hit(ctx, m)
		err = errors.Join(err, struck)
		if struck == nil {
			undos = append(undos, undo)
		}
	}
	return func() error {
		var err error
		for _, undo := range undos {
			err = errors.Join(err, undo())
		}
		return err
	}, err
}

// whom picks the schedulers that are struck.
type whom func(ctx context.Context, s *faultEnv) ([]*lab.Member, error)

func owner(ctx context.Context, s *faultEnv) ([]*lab.Member, error) {
	m, err := s.owner(ctx, work)
	return []*lab.Member{m}, err
}

func allSchedulers(_ context.Context, s *faultEnv) ([]*lab.Member, error) { return s.Schedulers, nil }

func killed(ctx context.Context, owner *lab.Member) (undo func() error, err error) {
	owner.Kill()
	return func() error { return owner.Revive(ctx) }, nil
}

func paused(_ context.Context, owner *lab.Member) (undo func() error, err error) {
	owner.Pause()
	return func() error { owner.Resume(); return nil }, nil
}

func isolated(ctx context.Context, owner *lab.Member) (undo func() error, err error) {
	if err := owner.Isolate(ctx); err != nil {
		return nil, err
	}
	return func() error { return owner.Mend(ctx) }, nil
}

// rest is how long slots may come to rest after a blow.
const rest = 2 * time.Second

// withoutAny measures the same for all schedulers together.
func withoutAny(ctx context.Context, r *runner) error {
	return errors.Join(
		stalls("kill_schedulers", 20, 10*time.Second, allSchedulers, killed)(ctx, r),
		stalls("pause_schedulers", 20, 10*time.Second, allSchedulers, paused)(ctx, r),
		stalls("cut_schedulers", 20, 10*time.Second, allSchedulers, isolated)(ctx, r),
	)
}

// stalls measures how long new calls wait after each of many strikes, for as long as
// schedulers are silent.
func stalls(name string, times int, silence time.Duration, whom whom, hit blow) func(context.Context, *runner) error {
	return func(ctx context.Context, r *runner) error {
		s, err := r.newEnv(ctx, name)
		if err != nil {
			return err
		}
		defer s.etcd.Close()
		// Short calls, many of them, so that each blow meets some at once.
		l := startLoad(ctx, s.config(slowly(toWork, "ms=5")))
		sleep.For(ctx, rest)
		var moments []int64
		for range r.times(times) {
			victims, err := whom(ctx, s)
			if err != nil {
				l.Stop()
				return err
			}
			moments = append(moments, now())
			undo, err := hit.strike(ctx, victims)
			if err == nil {
				sleep.For(ctx, silence)
				err = undo()
			}
			if err == nil {
				sleep.For(ctx, rest)
				err = s.owned(ctx, work)
			}
			if err != nil {
				l.Stop()
				return err
			}
		}
		s.calls = l.Stop()
		r.printStalls(name, s.calls, moments, int64(silence))
		return r.assess(ctx, s, name, nothing())
	}
}

// printStalls prints how long the slowest new call of each blow took, and how long
// it was until a new call had succeeded.
func (r *runner) printStalls(name string, calls []verdict.Call, moments []int64, silence int64) {
	var slowest, first []time.Duration
	for _, moment := range moments {
		until := moment + silence
		slowest = append(slowest, verdict.Stall(calls, moment, until))
		first = append(first, verdict.FirstSuccess(calls, moment, until))
	}
	r.figure(name+"_times", "%d", len(moments))
	for label, values := range map[string][]time.Duration{"stall": slowest, "first_success": first} {
		r.figure(name+"_"+label+"_p50_ms", "%.1f", milliseconds(verdict.Quantile(values, 0.5)))
		r.figure(name+"_"+label+"_p99_ms", "%.1f", milliseconds(verdict.Quantile(values, 0.99)))
		r.figure(name+"_"+label+"_max_ms", "%.1f", milliseconds(verdict.Quantile(values, 1)))
	}
}

func milliseconds(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

// rollingCalls is how many calls restarts are made under, in all.
const rollingCalls = 200_000

// rolling restarts gateways, schedulers and pods, each alone and all at once, over
// and over.
func rolling(ctx context.Context, r *runner) error {
	kinds := []struct {
		name    string
		restart func(ctx context.Context, s *faultEnv) error
	}{
		{"gateways", func(ctx context.Context, s *faultEnv) error { return s.restartGateways(ctx) }},
		{"schedulers", func(ctx context.Context, s *faultEnv) error { return s.restartSchedulers(ctx) }},
		{"agents", func(ctx context.Context, s *faultEnv) error { return s.deletePods(ctx, work) }},
		{"all", func(ctx context.Context, s *faultEnv) error { return s.restartEverything(ctx) }},
	}
	for _, kind := range kinds {
		s, err := r.newEnv(ctx, "rolling_"+kind.name)
		if err != nil {
			return err
		}
		config := s.config(slowly(toWork, "ms=1"))
		config.Rate, config.Clients = 0, 2*warm
		l := startLoad(ctx, config)
		rounds := 0
		for err == nil && l.Begun() < r.times(rollingCalls/len(kinds)) && ctx.Err() == nil {
			err = kind.restart(ctx, s)
			rounds++
		}
		s.calls = l.Stop()
		if err == nil {
			r.figure("rolling_"+kind.name+"_rounds", "%d", rounds)
			err = r.assess(ctx, s, "rolling_"+kind.name, nothing())
		}
		s.etcd.Close()
		if err != nil {
			return err
		}
	}
	return nil
}

// outage is how long etcd is away.
const outage = time.Minute

// outages takes etcd away for a minute, three times: nothing else happens, the
// owner is killed in the middle, and a gateway is restarted in the middle.
func outages(ctx context.Context, r *runner) error {
	half := func(ctx context.Context) { sleep.For(ctx, time.Duration(r.options.scale*float64(outage))/2) }
	kinds := []struct {
		name      string
		meanwhile func(ctx context.Context, s *faultEnv) error
	}{
		{"etcd_away", func(ctx context.Context, _ *faultEnv) error { half(ctx); half(ctx); return nil }},
		{"etcd_away_owner_killed", func(ctx context.Context, s *faultEnv) error { half(ctx); s.before.Kill(); half(ctx); return nil }},
		{"etcd_away_gateway_restarted", func(ctx context.Context, s *faultEnv) error {
			half(ctx)
			err := restartAGateway(ctx, s)
			half(ctx)
			return err
		}},
	}
	for _, kind := range kinds {
		s, err := r.newEnv(ctx, kind.name)
		if err != nil {
			return err
		}
		err = withoutEtcd((*lab.Member).Pause, kind.meanwhile)(ctx, s)
		if err == nil {
			err = r.assess(ctx, s, kind.name, nothing())
		}
		s.etcd.Close()
		if err != nil {
			return err
		}
	}
	return nil
}

// matrixCalls is how many calls the rows are run under, in all.
const matrixCalls = 1_000_000

// matrix runs all rows again and again, each time with another seed.
func matrix(ctx context.Context, r *runner) error {
	rows, err := r.options.chosen()
	if err != nil {
		return err
	}
	var total summary
	for ; total.Report.Calls < r.times(matrixCalls) && ctx.Err() == nil; r.options.seed++ {
		found, err := r.rows(ctx, rows)
		total.add(found)
		if err != nil {
			return err
		}
	}
	r.figure("matrix_rows", "%d", len(rows))
	r.figure("matrix_survived", "%d/%d", total.Survived, total.Rows)
	r.figure("matrix_calls", "%d", total.Report.Calls)
	r.figure("matrix_lost", "%d", total.Report.Lost)
	r.figure("matrix_duplicated", "%d", total.Report.Duplicated)
	r.figure("matrix_wrong_no", "%d", total.Report.WrongNo)
	r.figure("matrix_maybe_rate", "%.6f", total.Report.MaybeRate())
	r.broken = r.broken || total.status() != 0
	return nil
}

// restartEverything restarts gateways, schedulers and pods at the same time.
func (s *faultEnv) restartEverything(ctx context.Context) error {
	all := []func(context.Context) error{
		s.restartGateways, s.restartSchedulers,
		func(ctx context.Context) error { return s.deletePods(ctx, work) },
	}
	errs := make(chan error, len(all))
	for _, restart := range all {
		go func() { errs <- restart(ctx) }()
	}
	var err error
	for range all {
		if e := <-errs; e != nil {
			err = e
		}
	}
	return err
}
