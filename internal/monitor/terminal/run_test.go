package terminal

import (
	"bytes"
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	tea "charm.land/bubbletea/v2"

	"github.com/windlass-dev/windlass/internal/monitor"
	"github.com/windlass-dev/windlass/pkg/autoscaler/decisionlog"
	"github.com/windlass-dev/windlass/pkg/invocation"
)

// script tells nothing, at the time of its clock, and takes a while to.
type script struct {
	takes time.Duration
	err   error
	asked notes
}

// notes are taken by one goroutine and read by another.
type notes struct {
	mu    sync.Mutex
	lines []string
}

func (n *notes) take(line string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.lines = append(n.lines, line)
}

func (n *notes) read() []string {
	n.mu.Lock()
	defer n.mu.Unlock()
	return slices.Clone(n.lines)
}

func (s *script) Sample(ctx context.Context) (monitor.Sample, error) {
	s.asked.take("all")
	select {
	case <-time.After(s.takes):
	case <-ctx.Done():
		return monitor.Sample{}, ctx.Err()
	}
	return monitor.Read(time.Now(), nil), s.err
}

func (s *script) Decisions(_ context.Context, key invocation.FunctionKey) (decisionlog.Report, error) {
	s.asked.take(key.Name)
	return decisionlog.Report{Name: key.Name}, s.err
}

func TestItAsksAtIntervalsAndForTheFunctionThatIsLookedAt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &script{takes: 100 * time.Millisecond}
		a := &poller{Deps: Deps{Source: s, Decisions: s}, interval: time.Second, turned: make(chan struct{}, 1)}
		ctx, cancel := context.WithCancel(t.Context())
		var told notes
		done := make(chan struct{})
		go func() {
			defer close(done)
			a.run(ctx, func(msg tea.Msg) {
				switch msg := msg.(type) {
				case sampleMsg:
					told.take("sample")
				case decisionsMsg:
					told.take(msg.key.Name + " is " + msg.account.Name)
				}
			})
		}()
		time.Sleep(2500 * time.Millisecond)
		a.watchDecisions(&invocation.FunctionKey{Name: "hello"})
		synctest.Wait()
		if want := []string{"sample", "sample", "hello is hello"}; !slices.Equal(told.read(), want) {
			t.Errorf("told %q, want %q", told.read(), want)
		}
		time.Sleep(time.Second)
		a.watchDecisions(nil)
		time.Sleep(time.Second)
		synctest.Wait()
		if want := []string{"all", "all", "hello", "all", "hello", "all"}; !slices.Equal(s.asked.read(), want) {
			t.Errorf("asked for %q, want %q", s.asked.read(), want)
		}
		cancel()
		<-done
	})
}

func TestNobodyIsAskedTwiceAtATime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &script{takes: time.Hour}
		a := &poller{Deps: Deps{Source: s, Decisions: s}, interval: time.Second, turned: make(chan struct{}, 1)}
		ctx, cancel := context.WithCancel(t.Context())
		var told notes
		done := make(chan struct{})
		go func() {
			defer close(done)
			a.run(ctx, func(msg tea.Msg) { told.take(msg.(sampleMsg).err.Error()) })
		}()
		time.Sleep(time.Second + sampleWithin + time.Millisecond)
		synctest.Wait()
		if want := []string{context.DeadlineExceeded.Error()}; !slices.Equal(told.read(), want) {
			t.Errorf("told %q, want that it took too long", told.read())
		}
		if len(s.asked.read()) > 2 {
			t.Errorf("asked %d times while one answer was awaited", len(s.asked.read()))
		}
		cancel()
		<-done
	})
}

func TestTwoSamplesAreAnIntervalApart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &script{}
		v, err := Two(t.Context(), s, 3*time.Second)
		if err != nil || v.Over != 3 || len(s.asked.read()) != 2 {
			t.Errorf("%v, over %g s, asked %d times", err, v.Over, len(s.asked.read()))
		}
		s.err = errors.New("away")
		if _, err := Two(t.Context(), s, time.Second); !errors.Is(err, s.err) {
			t.Errorf("it ended with %v", err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		s.err = nil
		if _, err := Two(ctx, s, time.Minute); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("it ended with %v", err)
		}
	})
}

func TestA17AViewAfterEachInterval(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &script{}
		ctx, cancel := context.WithTimeout(t.Context(), 3500*time.Millisecond)
		defer cancel()
		var seen []float64
		err := Stream(ctx, s, time.Second, func(v monitor.View) error {
			seen = append(seen, v.Over)
			return nil
		}, func(error) {})
		if err != nil || !slices.Equal(seen, []float64{1, 2, 3}) {
			t.Errorf("%v, seen %v", err, seen)
		}
		s.err = errors.New("away")
		if err := Stream(t.Context(), s, time.Second, nil, nil); !errors.Is(err, s.err) {
			t.Errorf("it ended with %v", err)
		}
	})
}

// sources answer one after the other.
type sources []Source

func (s *sources) Sample(ctx context.Context) (monitor.Sample, error) {
	next := (*s)[0]
	*s = (*s)[1:]
	return next.Sample(ctx)
}

func TestAStreamOutlastsAReadThatFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		away, broken := errors.New("away"), errors.New("broken pipe")
		views := 0
		var noted []error
		err := Stream(t.Context(), &sources{&script{}, &script{}, &script{err: away}, &script{}}, time.Second, func(monitor.View) error {
			if views++; views == 2 {
				return broken
			}
			return nil
		}, func(err error) { noted = append(noted, err) })
		if !errors.Is(err, broken) || !slices.Equal(noted, []error{nil, nil, away}) {
			t.Errorf("it ended with %v after %d views, and told of %v", err, views, noted)
		}
	})
}

func TestNothingIsShownIfThereIsNothing(t *testing.T) {
	away := errors.New("away")
	var out bytes.Buffer
	err := Run(t.Context(), Config{Interval: time.Second}, Deps{Source: &script{err: away}, In: strings.NewReader(""), Out: &out})
	if !errors.Is(err, away) || out.Len() > 0 {
		t.Errorf("it ended with %v and wrote %q", err, out.String())
	}
}

func TestPrintingHasNoColours(t *testing.T) {
	var out bytes.Buffer
	v := sight()
	v.Troubles = []string{"gateway-1 does not answer"}
	if err := Print(&out, v, Config{Order: monitor.ByName, Choice: monitor.Choice{Text: "e"}}); err != nil {
		t.Fatal(err)
	}
	golden(t, "printed", out.String())
}
