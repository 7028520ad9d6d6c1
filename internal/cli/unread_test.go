package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"
	"testing/synctest"
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
	a := newApp(Streams{Out: writer}, Programs{})
	failed := errors.New("failed")
	if err := a.whileRead(func(context.Context) error { return failed })(t.Context()); !errors.Is(err, failed) {
		t.Errorf("got %v", err)
	}
}
