package main

import (
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
	// read is how much of the run log earlier rows have written, in bytes.
	read int64
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
	s, err := r.newEnv("start")
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
	if r.usual, err = r.holdings(ctx); err != nil {
		return nil, err
	}
	return r, nil
}

func (r *runner) newEnv(name string) (*faultEnv, error) {
	client, err := r.lab.Etcd.Client()
	if err != nil {
		return nil, err
	}
	// Each row has chance of its own, so that it is the same alone.
	var mixed uint64
	for _, c := range []byte(name) {
		mixed = mixed*131 + uint64(c)
	}
	rng := rand.New(rand.NewPCG(r.options.seed, mixed))
	return &faultEnv{Lab: r.lab, slots: slots{r.lab, client}, rng: rng, row: name, rate: r.options.rate, epochs: r.epochs}, nil
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
	return found, nil
}

// row runs one row, heals Windlass, and returns the verdict, what the row measured, and
// how long it took.
func (r *runner) row(ctx context.Context, row row) (report verdict.Report, notes []string, took time.Duration) {
	ctx, cancel := context.WithTimeout(ctx, rowWithin)
	defer cancel()
	began := time.Now()
	s, err := r.newEnv(row.id)
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
	runs, readErr := r.newRuns()
	report = verdict.Judge(s.calls, runs, row.allow)
	report.Faults = append(report.Faults, s.broken...)
	report.Faults = append(report.Faults, verdict.Late(runs, s.forbidden)...)
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

// newRuns reads what the functions have written since it was read last.
func (r *runner) newRuns() ([]verdict.Run, error) {
	file, err := os.Open(r.lab.RunLog)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	if _, err := file.Seek(r.read, io.SeekStart); err != nil {
		return nil, err
	}
	text, err := io.ReadAll(file)
	if err != nil {
		return nil, err
	}
	r.read += int64(len(text))
	return verdict.ReadRunLog(strings.NewReader(string(text)))
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
// answer, call after call. These calls are not a part of the verdict on the fault,
// but no call of them may be duplicated either.
func (s *faultEnv) recover(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, recoverWithin)
	defer cancel()
	for _, name := range []string{work, again} {
		for good := 0; good < inARow; {
			s.loads++
			config := loadConfig{Targets: s.Targets(), Patience: 5 * time.Second, Name: fmt.Sprintf("%s.r%d", s.row, s.loads), Seed: s.rng.Uint64()}
			config.Next = fixed(request{Function: "faults/" + name, Query: "ms=1", Body: 10})
			calls := callSome(ctx, config, 1)
			if ctx.Err() != nil {
				return fmt.Errorf("%s did not recover within %v: last answer %+v", name, recoverWithin, calls)
			}
			if calls[0].Succeeded() && len(s.Kubelet.PodsOf(name)) >= warm {
				good++
			} else {
				good = 0
				sleep.For(ctx, 100*time.Millisecond)
			}
		}
	}
	return nil
}
