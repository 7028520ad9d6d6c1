package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"strings"
	"time"

	"github.com/windlass-dev/windlass/api/v1alpha1"
	"github.com/windlass-dev/windlass/internal/sleep"
	"github.com/windlass-dev/windlass/test/faults/verdict"
	"github.com/windlass-dev/windlass/test/lab"
)

// runner runs rows one after the other in one lab.
type runner struct {
	lab     *lab.Lab
	options options
	out     io.Writer
	epochs  *epochWatch
	// read is how much of the run log was read, in bytes.
	read   int64
	runLog verdict.RunLog
	// history are the calls of all rows, and envs how many rows there were.
	history verdict.History
	envs    int
	// broken says that a figure was measured in which a promise was.
	broken bool
	// usual is what members hold when nothing is wrong.
	usual []holding
}

// settleWithin is how long Windlass may take to share its slots out.
const settleWithin = 2 * time.Minute

// newRunner creates the functions that are always there, and waits for them.
func newRunner(ctx context.Context, l *lab.Lab, o options, out io.Writer) (*runner, error) {
	r := &runner{lab: l, options: o, out: out}
	for _, name := range []string{work, again} {
		_, err := l.Cluster.Function(ctx, name, func(spec *v1alpha1.FunctionSpec) {
			settings(spec)
			if name == again {
				spec.Calls.Delivery = v1alpha1.DeliveryAtLeastOnce
			}
		})
		if err != nil {
			return nil, err
		}
	}
	ctx, cancel := context.WithTimeout(ctx, settleWithin)
	defer cancel()
	var err error
	if r.epochs, err = watchEpochs(ctx, l); err != nil {
		return nil, err
	}
	s, err := r.newEnv(ctx, "start")
	if err != nil {
		return nil, err
	}
	defer s.etcd.Close()
	if err := s.recover(ctx); err != nil {
		return nil, err
	}
	if err := s.atRest(ctx); err != nil {
		return nil, err
	}
	if err := r.passed(s); err != nil {
		return nil, err
	}
	if r.usual, err = r.holdings(ctx); err != nil {
		return nil, err
	}
	return r, nil
}

func (r *runner) newEnv(ctx context.Context, name string) (*faultEnv, error) {
	client, err := r.lab.Etcd.Client()
	if err != nil {
		return nil, err
	}
	if err := r.epochs.follow(ctx); err != nil {
		return nil, errors.Join(err, client.Close())
	}
	// Each row has chance of its own, so that it is the same alone.
	var mixed uint64
	for _, c := range []byte(name) {
		mixed = mixed*131 + uint64(c)
	}
	rng := rand.New(rand.NewPCG(r.options.seed, mixed))
	r.envs++
	return &faultEnv{
		Lab: r.lab, slots: slots{r.lab, client}, rng: rng, row: name, prefix: fmt.Sprintf("%s.%d", name, r.envs),
		rate: r.options.rate, epochs: r.epochs, unread: r.unread,
	}, nil
}

// rowWithin bounds a row with all that comes after it.
const rowWithin = 5 * time.Minute

// rows runs rows one after the other.
func (r *runner) rows(ctx context.Context, rows []row) (summary, error) {
	var found summary
	for _, row := range rows {
		if ctx.Err() != nil {
			return found, context.Cause(ctx)
		}
		report, notes, took := r.row(ctx, row)
		r.print(row, report, notes, took)
		found.count(report)
		found.Records = append(found.Records, newRecord(row, report, notes, took))
	}
	if report := r.afterwards(ctx); !report.Kept() {
		last := row{id: "end", fault: "nothing: what was executed after the last row's verdict"}
		r.print(last, report, nil, executedWithin)
		found.count(report)
		found.Records = append(found.Records, newRecord(last, report, nil, executedWithin))
	}
	return found, nil
}

// executedWithin is how long the last row is looked at for executions that come after its verdict.
const executedWithin = 5 * time.Second

// afterwards judges what is executed when the last row has ended.
func (r *runner) afterwards(ctx context.Context) verdict.Report {
	sleep.For(ctx, executedWithin)
	report, err := r.judge(&faultEnv{}, nothing())
	if err != nil {
		report.Faults = append(report.Faults, err.Error())
	}
	return report
}

// row runs one row, heals Windlass, and returns the verdict, what the row measured, and
// how long it took.
func (r *runner) row(ctx context.Context, row row) (report verdict.Report, notes []string, took time.Duration) {
	ctx, cancel := context.WithTimeout(ctx, rowWithin)
	defer cancel()
	began := time.Now()
	s, err := r.newEnv(ctx, row.id)
	if err != nil {
		return verdict.Report{Faults: []string{err.Error()}}, nil, time.Since(began)
	}
	defer s.etcd.Close()
	if row.rate > 0 {
		s.rate = row.rate
	}
	err = row.run(ctx, s)
	// Whatever the row left must not be there in the next one.
	healing, stop := context.WithTimeout(context.WithoutCancel(ctx), rowWithin)
	defer stop()
	err = errors.Join(err, s.heal(healing))
	report, readErr := r.judge(s, row.allow)
	report.Faults = append(report.Faults, r.epochs.finding(s.epochsFall)...)
	settled := time.Now()
	report.Faults = append(report.Faults, r.leaks(healing)...)
	if took := time.Since(settled); took > time.Second {
		s.note("settled=%v", took.Round(100*time.Millisecond))
	}
	if err = errors.Join(err, readErr); err != nil {
		report.Faults = append(report.Faults, strings.Split(err.Error(), "\n")...)
	}
	return report, s.notes, time.Since(began)
}

func (r *runner) print(row row, report verdict.Report, notes []string, took time.Duration) {
	word := "survived"
	if !report.Kept() {
		word = "FAILED  "
	}
	fmt.Fprintf(r.out, "%-5s %s calls=%d ok=%d no=%d maybe=%d broken=%d failed=%d slowest=%v %s [%v] %s\n", row.id, word,
		report.Calls, report.Succeeded, report.No, report.Maybe, report.Broken, report.Failed,
		report.Slowest.Round(time.Millisecond), strings.Join(notes, " "), took.Round(100*time.Millisecond), row.fault)
	for _, fault := range report.Faults {
		fmt.Fprintf(r.out, "      %s\n", fault)
	}
}

// newRuns reads what functions have written since the last verdict.
func (r *runner) newRuns() ([]verdict.Run, error) {
	runs, length, err := r.peek()
	r.read += length
	return runs, err
}

// unread is newRuns that leaves all to the verdict.
func (r *runner) unread() ([]verdict.Run, error) {
	runs, _, err := r.peek()
	return runs, err
}

// peek reads what of the run log was not read yet, as far as its lines are whole.
func (r *runner) peek() (runs []verdict.Run, length int64, err error) {
	file, err := os.Open(r.lab.RunLog)
	if err != nil {
		return nil, 0, err
	}
	defer file.Close()
	if _, err := file.Seek(r.read, io.SeekStart); err != nil {
		return nil, 0, err
	}
	text, err := io.ReadAll(file)
	if err != nil {
		return nil, 0, err
	}
	whole := text[:bytes.LastIndexByte(text, '\n')+1]
	runs, err = r.runLog.Read(bytes.NewReader(whole))
	return runs, int64(len(whole)), err
}

// judge compares the calls of a row with what was executed since the last verdict, and adds what the row
// holds against Windlass itself.
func (r *runner) judge(s *faultEnv, allow verdict.Allowance) (verdict.Report, error) {
	runs, err := r.newRuns()
	report := r.history.Judge(verdict.Row{Calls: s.calls, Allow: allow, Recovery: s.recovery, Runs: runs, Forbidden: s.forbidden})
	report.Faults = append(report.Faults, s.broken...)
	return report, err
}

// passed judges calls that were made before any fault.
func (r *runner) passed(s *faultEnv) error {
	report, err := r.judge(s, nothing())
	if err == nil && !report.Kept() {
		err = fmt.Errorf("%s: %s", s.row, strings.Join(report.Faults, "; "))
	}
	return err
}

// Bounds of a recovery, within which Windlass works as before or never.
const (
	recoverWithin = time.Minute
	inARow        = 20
)

// heal takes every fault back and returns when Windlass works as before.
func (s *faultEnv) heal(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, 2*recoverWithin)
	defer cancel()
	if err := s.Heal(ctx); err != nil {
		return err
	}
	for _, node := range s.Kubelet.Nodes() {
		if err := s.Kubelet.ReturnNode(ctx, node); err != nil {
			return err
		}
	}
	began := time.Now()
	err := s.recover(ctx)
	s.note("recovered=%v", time.Since(began).Round(10*time.Millisecond))
	return err
}

// recover returns when both standing functions have all their instances and
// answer, call after call. What the fault may cost is not said of these calls, and each may
// fail; but none may be executed twice, or after a "no".
func (s *faultEnv) recover(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, recoverWithin)
	defer cancel()
	for _, name := range []string{work, again} {
		for good := 0; good < inARow; {
			s.loads++
			config := loadConfig{Targets: s.Targets(), Patience: 5 * time.Second, Name: fmt.Sprintf("%s.r%d", s.prefix, s.loads), Seed: s.rng.Uint64()}
			config.Next = fixed(request{Function: "faults/" + name, Query: "ms=1", Body: 10, Repeatable: name == again})
			call := s.probe(ctx, config)
			if ctx.Err() != nil {
				return fmt.Errorf("%s did not recover within %v: last answer %+v", name, recoverWithin, call)
			}
			if call.Succeeded() && len(s.Kubelet.PodsOf(name)) >= warm {
				good++
			} else {
				good = 0
				sleep.For(ctx, 100*time.Millisecond)
			}
		}
	}
	return nil
}

// probe makes one call of a recovery.
func (s *faultEnv) probe(ctx context.Context, config loadConfig) verdict.Call {
	calls := callSome(ctx, config, 1)
	if len(calls) == 0 {
		return verdict.Call{Outcome: verdict.Left}
	}
	if calls[0].Outcome == verdict.Unanswered {
		calls[0].Outcome = verdict.Left // before a gateway has to answer
	}
	s.recovery = append(s.recovery, calls[0])
	return calls[0]
}
