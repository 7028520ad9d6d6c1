package role

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// run runs a logWriter and returns what ends it.
func run(w *logWriter) (end func()) {
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = w.Run(ctx)
	}()
	return func() { cancel(); <-ended }
}

func TestLinesAreWrittenInTheirOrder(t *testing.T) {
	var out, want bytes.Buffer
	w := newLogWriter(&out)
	fmt.Fprintln(w, "before it runs")
	end := run(w)
	fmt.Fprintln(&want, "before it runs")
	line := make([]byte, 0, 20)
	for i := range 1000 {
		line = fmt.Appendf(line[:0], "line %d\n", i)
		want.Write(line)
		if n, err := w.Write(line); n != len(line) || err != nil {
			t.Fatalf("Write is %d, %v", n, err)
		}
	}
	end()
	if out.String() != want.String() || w.Dropped() != 0 {
		t.Errorf("%d of %d bytes were written, %d lines dropped", out.Len(), want.Len(), w.Dropped())
	}
}

func TestNobodyWaitsForAReaderThatDoesNotRead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		reader, pipe := io.Pipe()
		w := newLogWriter(pipe)
		end := run(w)
		line := []byte(strings.Repeat("x", 1023) + "\n")
		began := time.Now()
		const lines = 5000
		for range lines {
			if n, err := w.Write(line); n != len(line) || err != nil {
				t.Fatalf("Write is %d, %v", n, err)
			}
		}
		if waited := time.Since(began); waited != 0 {
			t.Errorf("those who log waited for %v", waited)
		}
		kept := lines - int(w.Dropped())
		if kept < 1000 || kept > 1024 {
			t.Errorf("%d lines of a kilobyte were kept, want about a megabyte", kept)
		}
		// Once somebody reads, what was kept is there, and there is room again.
		var got bytes.Buffer
		var reading sync.WaitGroup
		reading.Go(func() { _, _ = io.Copy(&got, reader) })
		synctest.Wait()
		fmt.Fprintln(w, "the last line")
		end()
		pipe.Close()
		reading.Wait()
		if n := bytes.Count(got.Bytes(), []byte("\n")); n != kept+1 || !strings.HasSuffix(got.String(), "x\nthe last line\n") {
			t.Errorf("%d lines were read, want %d", n, kept+1)
		}
	})
}

func TestItsEndIsNotHeldUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		reader, pipe := io.Pipe()
		w := newLogWriter(pipe)
		end := run(w)
		fmt.Fprintln(w, "nobody reads this")
		synctest.Wait()
		began := time.Now()
		end()
		if took := time.Since(began); took != time.Second {
			t.Errorf("it took %v to end, want 1s", took)
		}
		reader.Close()
	})
}

type broken struct{}

func (broken) Write([]byte) (int, error) { return 0, errors.New("no space left on device") }

func TestAFullDiskFailsNobody(t *testing.T) {
	w := newLogWriter(broken{})
	end := run(w)
	for range 5000 {
		if _, err := w.Write(make([]byte, 1000)); err != nil {
			t.Fatal(err)
		}
	}
	end()
}
