package terminal

import (
	"bytes"
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	tea "charm.land/bubbletea/v2"

	"github.com/windlass-dev/windlass/pkg/fpcs/history"
	"github.com/windlass-dev/windlass/pkg/invoke"
	"github.com/windlass-dev/windlass/pkg/live"
)

// script tells nothing, at the time of its clock, and takes a while to.
type script struct {
	takes time.Duration
	err   error
	asked []string
}

func (s *script) Sample(ctx context.Context) (live.Sample, error) {
	s.asked = append(s.asked, "all")
	select {
	case <-time.After(s.takes):
	case <-ctx.Done():
		return live.Sample{}, ctx.Err()
	}
	return live.Read(time.Now(), nil), s.err
}

func (s *script) Decisions(_ context.Context, key invoke.FunctionKey) (history.Account, error) {
	s.asked = append(s.asked, key.Name)
	return history.Account{Name: key.Name}, s.err
}

func TestItAsksAtIntervalsAndForTheFunctionThatIsLookedAt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &script{takes: 100 * time.Millisecond}
		a := &asker{Deps: Deps{Source: s, Historian: s}, interval: time.Second, turned: make(chan struct{}, 1)}
		ctx, cancel := context.WithCancel(t.Context())
		var told []string
		done := make(chan struct{})
		go func() {
			defer close(done)
			a.run(ctx, func(msg tea.Msg) {
				switch msg := msg.(type) {
				case sampleMsg:
					told = append(told, "sample")
				case accountMsg:
					told = append(told, msg.key.Name+" is "+msg.account.Name)
				}
			})
		}()
		time.Sleep(2500 * time.Millisecond)
		a.turnTo(&invoke.FunctionKey{Name: "hello"})
		synctest.Wait()
		if want := []string{"sample", "sample", "hello is hello"}; !slices.Equal(told, want) {
			t.Errorf("told %q, want %q", told, want)
		}
		time.Sleep(time.Second)
		a.turnTo(nil)
		time.Sleep(time.Second)
		if want := []string{"all", "all", "hello", "all", "hello", "all"}; !slices.Equal(s.asked, want) {
			t.Errorf("asked for %q, want %q", s.asked, want)
		}
		cancel()
		<-done
	})
}

func TestNobodyIsAskedTwiceAtATime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &script{takes: time.Hour}
		a := &asker{Deps: Deps{Source: s, Historian: s}, interval: time.Second, turned: make(chan struct{}, 1)}
		ctx, cancel := context.WithCancel(t.Context())
		var errs []error
		done := make(chan struct{})
		go func() {
			defer close(done)
			a.run(ctx, func(msg tea.Msg) { errs = append(errs, msg.(sampleMsg).err) })
		}()
		time.Sleep(time.Second + sampleWithin + time.Millisecond)
		synctest.Wait()
		if len(errs) != 1 || !errors.Is(errs[0], context.DeadlineExceeded) {
			t.Errorf("told %v, want that it took too long", errs)
		}
		if len(s.asked) > 2 {
			t.Errorf("asked %d times while one answer was awaited", len(s.asked))
		}
		cancel()
		<-done
	})
}

func TestTwoSamplesAreAnIntervalApart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &script{}
		v, err := Two(t.Context(), s, 3*time.Second)
		if err != nil || v.Over != 3 || len(s.asked) != 2 {
			t.Errorf("%v, over %g s, asked %d times", err, v.Over, len(s.asked))
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
	if err := Print(&out, v, Config{Order: live.ByName, Choice: live.Choice{Text: "e"}}); err != nil {
		t.Fatal(err)
	}
	golden(t, "printed", out.String())
}
