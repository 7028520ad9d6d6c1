package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/windlass-dev/windlass/api/v1alpha1"
	"github.com/windlass-dev/windlass/internal/monitor"
	"github.com/windlass-dev/windlass/pkg/autoscaler/decisionlog"
	"github.com/windlass-dev/windlass/pkg/invocation"
)

// unread is a pipe that nobody reads.
func unread(t *testing.T) *os.File {
	t.Helper()
	reader, writer, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { writer.Close() })
	if err := reader.Close(); err != nil {
		t.Fatal(err)
	}
	return writer
}

func TestWorkGoesOnThoughNobodyReadsItsOutput(t *testing.T) {
	// A test binary that is asked to runs such work, because the signal is only for the standard
	// streams of a process.
	const asked, outcome = "WINDLASS_TEST_UNREAD", "it drained"
	if os.Getenv(asked) != "" {
		a := newApp(Streams{Out: os.Stdout, Err: os.Stderr}, Programs{})
		err := a.interruptible(t.Context(), func(context.Context) error {
			fmt.Fprintln(a.Out, "a call")
			return errors.New(outcome)
		})
		fmt.Fprintln(a.Err, err)
		os.Exit(0)
	}
	cmd := exec.Command(os.Args[0], "-test.run=^"+t.Name()+"$")
	var said strings.Builder
	cmd.Env, cmd.Stdout, cmd.Stderr = append(os.Environ(), asked+"=1"), unread(t), &said
	if err := cmd.Run(); err != nil || !strings.Contains(said.String(), outcome) {
		t.Errorf("%v; it said %q", err, said.String())
	}
}

func TestALogIsFollowedOnlyWhileItIsRead(t *testing.T) {
	waits := func(ctx context.Context) error {
		<-ctx.Done()
		return ctx.Err()
	}
	synctest.Test(t, func(t *testing.T) {
		a := newApp(Streams{Out: unread(t)}, Programs{})
		if err := a.whileRead(waits)(t.Context()); err != nil {
			t.Errorf("a reader that has gone is an error: %v", err)
		}
	})
	reader, writer, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer reader.Close()
	defer writer.Close()
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), 100*readerEvery)
		defer cancel()
		a := newApp(Streams{Out: writer}, Programs{})
		if err := a.whileRead(waits)(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("it ended with %v while it was read", err)
		}
	})
}

func TestWorkThatFailsIsAnErrorAlsoIfItsReaderLeavesThen(t *testing.T) {
	failed := errors.New("failed")
	synctest.Test(t, func(t *testing.T) {
		a := newApp(Streams{Out: unread(t)}, Programs{})
		for _, after := range []time.Duration{0, 2 * readerEvery} {
			err := a.whileRead(func(context.Context) error {
				time.Sleep(after)
				return failed
			})(t.Context())
			if !errors.Is(err, failed) {
				t.Errorf("after %v it ended with %v", after, err)
			}
		}
	})
}

// still is a Windlass in which nothing happens.
type still struct{}

func (still) DecisionGetter() decisionGetter                 { return still{} }
func (still) Snapshotter(func() time.Time) snapshotter       { return still{} }
func (still) Sample(context.Context) (monitor.Sample, error) { return monitor.Sample{}, nil }
func (still) Close() error                                   { return nil }

func (still) Decisions(context.Context, invocation.FunctionKey) (decisionlog.Report, error) {
	return decisionlog.Report{Served: true}, nil
}

// Success would say that calls go to the revision.
func TestARolloutThatNobodyReadsIsNotSuccessful(t *testing.T) {
	fn := clusterFunction("team", "f", metav1.ConditionTrue, v1alpha1.ReasonStarted)
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), 100*readerEvery)
		defer cancel()
		a := newApp(Streams{Out: unread(t), Err: io.Discard}, Programs{})
		windlass := &target{registry: &script{answers: []func() (*v1alpha1.Function, error){is(fn)}}}
		err := (&rollouter{a.finder}).followWhileRead(ctx, windlass, fn, 0)
		if ctx.Err() != nil || err == nil || !strings.Contains(err.Error(), "windlass rollout status") {
			t.Errorf("after its reader had gone it ended with %v; its time was over: %t", err, ctx.Err() != nil)
		}
	})
}

func TestWhatFollowsEndsWithItsReader(t *testing.T) {
	fn := clusterFunction("team", "f", metav1.ConditionTrue, v1alpha1.ReasonStarted)
	for name, follow := range map[string]func(ctx context.Context, f *finder, t *target) error{
		"explain -f": func(ctx context.Context, f *finder, t *target) error {
			return (&decisions{f}).explainFunction(ctx, t, fn.Key(), explanation{output: "table", last: 1, follow: true})
		},
		"top -o json": func(ctx context.Context, f *finder, t *target) error {
			return (&overview{f}).top(ctx, t, topFlags{output: "json", sort: string(monitor.ByQueue), interval: time.Hour})
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithTimeout(t.Context(), 100*readerEvery)
				defer cancel()
				a := newApp(Streams{Out: unread(t), Err: io.Discard}, Programs{})
				windlass := &target{registry: &script{answers: []func() (*v1alpha1.Function, error){is(fn)}}, decisionSource: still{}, snapshotSource: still{}}
				if err := follow(ctx, a.finder, windlass); err != nil || ctx.Err() != nil {
					t.Errorf("after its reader had gone it ended with %v; its time was over: %t", err, ctx.Err() != nil)
				}
			})
		})
	}
}
