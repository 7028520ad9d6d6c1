package terminal

import (
	"context"
	"errors"
	"io"
	"sync"
	"time"

	tea "charm.land/bubbletea/v2"

	"github.com/windlass-dev/windlass/internal/monitor"
	"github.com/windlass-dev/windlass/pkg/autoscaler/decisionlog"
	"github.com/windlass-dev/windlass/pkg/invocation"
)

// Source reads the present state.
type Source interface {
	// Sample fails if no process answers. If only some do not, the Sample names them.
	Sample(ctx context.Context) (monitor.Sample, error)
}

// DecisionGetter gets the last decisions on a function.
type DecisionGetter interface {
	Decisions(ctx context.Context, key invocation.FunctionKey) (decisionlog.Report, error)
}

// Config is what to show.
type Config struct {
	// Place says whose functions these are.
	Place string
	// Interval is the time from one View to the next, more than 0.
	Interval time.Duration
	Order    monitor.Order
	Choice   monitor.Choice
	// Nodes shows nodes first, instead of functions.
	Nodes bool
}

// Deps are the source and the terminal: its input, its output and its environment.
type Deps struct {
	Source    Source
	Decisions DecisionGetter
	In        io.Reader
	Out       io.Writer
	Environ   []string
}

// sampleWithin is how long all processes together may take to tell.
const sampleWithin = 10 * time.Second

// Run shows Views until its user quits or ctx ends. It fails if the first read fails; later it
// retries.
func Run(ctx context.Context, c Config, d Deps) error {
	first, err := sample(ctx, d.Source)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	var asking sync.WaitGroup
	// What asks ends before Run does.
	defer asking.Wait()
	defer cancel()
	a := &poller{Deps: d, interval: c.Interval, turned: make(chan struct{}, 1)}
	m := newModel(c, a.watchDecisions)
	m, _ = m.see(sampleMsg{sample: first})
	program := tea.NewProgram(m, tea.WithContext(ctx), tea.WithInput(d.In), tea.WithOutput(d.Out), tea.WithEnvironment(d.Environ))
	asking.Go(func() { a.run(ctx, program.Send) })
	_, err = program.Run()
	if errors.Is(err, tea.ErrInterrupted) || ctx.Err() != nil {
		return nil
	}
	return err
}

// Stream hands over a View after each interval, until ctx ends or show fails. The first one has
// rates already. Like Run, it fails if the first read fails; later it retries, and note gets the
// error, or nil.
func Stream(ctx context.Context, source Source, interval time.Duration, show func(monitor.View) error, note func(error)) error {
	var w monitor.Watcher
	ticker := time.NewTicker(interval)
	defer ticker.Stop()
	for first := true; ; first = false {
		s, err := sample(ctx, source)
		switch {
		case ctx.Err() != nil:
			return nil
		case err != nil && first:
			return err
		case err == nil:
			if view := w.See(s); !first {
				if err := show(view); err != nil {
					return err
				}
			}
		}
		note(err)
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
		}
	}
}

// Two is the View of two Samples, an interval apart: enough for rates.
func Two(ctx context.Context, source Source, interval time.Duration) (monitor.View, error) {
	var w monitor.Watcher
	first, err := sample(ctx, source)
	if err != nil {
		return monitor.View{}, err
	}
	w.See(first)
	select {
	case <-time.After(interval):
	case <-ctx.Done():
		return monitor.View{}, ctx.Err()
	}
	second, err := sample(ctx, source)
	if err != nil {
		return monitor.View{}, err
	}
	return w.See(second), nil
}

func sample(ctx context.Context, source Source) (monitor.Sample, error) {
	ctx, cancel := context.WithTimeout(ctx, sampleWithin)
	defer cancel()
	return source.Sample(ctx)
}

// sampleMsg has a sample, or the error.
type sampleMsg struct {
	sample monitor.Sample
	err    error
}

// decisionsMsg has a function's decisions, or the error.
type decisionsMsg struct {
	key     invocation.FunctionKey
	account decisionlog.Report
	err     error
}

// poller takes samples and gets decisions for the screen.
type poller struct {
	Deps
	interval time.Duration
	// turned says that the function has changed.
	turned chan struct{}

	mu sync.Mutex
	// function is the one whose decisions are wanted, or nil.
	function *invocation.FunctionKey
}

// watchDecisions makes it get the decisions on a function, or on none.
func (a *poller) watchDecisions(key *invocation.FunctionKey) {
	a.mu.Lock()
	a.function = key
	a.mu.Unlock()
	select {
	case a.turned <- struct{}{}:
	default:
	}
}

func (a *poller) watched() *invocation.FunctionKey {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.function
}

// run asks until ctx ends.
func (a *poller) run(ctx context.Context, tell func(tea.Msg)) {
	ticker := time.NewTicker(a.interval)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-a.turned:
		case <-ticker.C:
			s, err := sample(ctx, a.Source)
			tell(sampleMsg{s, err})
		}
		if key := a.watched(); key != nil {
			asked, cancel := context.WithTimeout(ctx, sampleWithin)
			account, err := a.Decisions.Decisions(asked, *key)
			cancel()
			tell(decisionsMsg{*key, account, err})
		}
	}
}
