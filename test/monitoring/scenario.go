package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/windlass-dev/windlass/internal/sleep"
	"github.com/windlass-dev/windlass/test/monitoring/prometheus"
)

// scenario brings an alert about by its real condition.
type scenario struct {
	// alert is its name, and function that of the function that is made for it,
	// if one is.
	alert, function string
	// cause makes the condition and returns what takes it away. The function
	// stays.
	cause func(ctx context.Context, w *harness, function string) (undo func() error, err error)
	// says is a part of the alert's summary.
	says string
}

// checkSummary returns an error if the alert does not say what it is about.
func (s scenario) checkSummary(a *prometheus.Alert) error {
	if summary := a.Annotations["summary"]; !strings.Contains(summary, s.says) {
		return fmt.Errorf("its summary is %q, without %q", summary, s.says)
	}
	return nil
}

// Bounds of a scenario, within which an alert fires, and resolves, or never.
const (
	firesWithin    = 240 * time.Second
	resolvesWithin = 150 * time.Second
)

// run makes a scenario's condition and takes it away again.
func (s scenario) run(ctx context.Context, w *harness) {
	began := time.Now()
	if a, err := w.fires(ctx, s.alert, s.function); err != nil || a != nil {
		w.fail("%s fires before there is a reason: %v, %v", s.alert, a, err)
	}
	if s.function != "" {
		defer func() {
			if err := w.Cluster.Delete(context.WithoutCancel(ctx), s.function); err != nil {
				w.fail("%s: %v", s.alert, err)
			}
		}()
	}
	undo, err := s.cause(ctx, w, s.function)
	var fired time.Duration
	if err == nil {
		fired, err = s.fires(ctx, w, began)
	}
	if undo != nil {
		err = errors.Join(err, undo())
	}
	if err != nil {
		w.fail("%s: %v", s.alert, err)
		return
	}
	undone := time.Now()
	limit, cancel := context.WithTimeout(ctx, resolvesWithin)
	defer cancel()
	err = sleep.Until(limit, askEvery, func() (bool, error) {
		a, err := w.fires(limit, s.alert, s.function)
		return a == nil, err
	})
	if err != nil {
		w.fail("%s has not resolved within %v: %v", s.alert, resolvesWithin, err)
		return
	}
	w.say("%-26s fired after %v, resolved after %v", s.alert, fired.Round(time.Second), time.Since(undone).Round(time.Second))
}

// fires returns when the alert fires, and checks what it says.
func (s scenario) fires(ctx context.Context, w *harness, began time.Time) (time.Duration, error) {
	limit, cancel := context.WithTimeout(ctx, firesWithin)
	defer cancel()
	err := sleep.Until(limit, askEvery, func() (bool, error) {
		a, err := w.fires(limit, s.alert, s.function)
		if a != nil {
			w.say("%-26s says: %s", s.alert, a.Annotations["description"])
			return true, s.checkSummary(a)
		}
		return false, err
	})
	if err != nil {
		return 0, fmt.Errorf("it has not fired as it should within %v: %w", firesWithin, err)
	}
	return time.Since(began), nil
}

// inLab runs all scenarios, and asks the questions that had no answer in the demo.
func (o options) inLab(ctx context.Context, dir string) (ok bool, err error) {
	w, err := openHarness(ctx, dir, o.out)
	if err != nil {
		return false, err
	}
	defer func() { err = errors.Join(err, w.close()) }()
	w.say("alerts: times of rules are divided by %v", o.factor)
	stop, err := w.standing(ctx)
	if err != nil {
		return false, err
	}
	defer stop()
	if !w.calm(ctx) {
		return false, nil
	}
	w.runScenario(ctx, o.alerts)
	if ctx.Err() != nil {
		return false, context.Cause(ctx)
	}
	if o.alerts != "" {
		return !w.failed, nil
	}
	return w.summarize(ctx, dir)
}

// runScenario runs the scenarios that are chosen. Those of functions do not disturb each
// other; those of components come one after the other.
func (w *harness) runScenario(ctx context.Context, chosen string) {
	var functions sync.WaitGroup
	for _, s := range functionScenarios() {
		if named(chosen, s.alert) {
			functions.Go(func() { s.run(ctx, w) })
		}
	}
	if chosen == "" {
		functions.Go(func() { w.provoke(ctx) })
	}
	functions.Wait()
	for _, s := range componentScenarios() {
		if named(chosen, s.alert) && ctx.Err() == nil {
			s.run(ctx, w)
		}
	}
}

// calmFor is how long no alert may fire in a Windlass in which all is well.
const calmFor = 15 * time.Second

// calm says whether no alert fires while all is well.
func (w *harness) calm(ctx context.Context) bool {
	sleep.For(ctx, calmFor)
	firing, err := w.prometheus.Firing(ctx)
	if err != nil || len(firing) > 0 {
		w.fail("alerts while all is well: %v, %v", firing, err)
		return false
	}
	w.say("no alert in %v in which all is well", calmFor)
	return true
}

// summarize asks all questions, and says whether all has been seen by now.
func (w *harness) summarize(ctx context.Context, dir string) (ok bool, err error) {
	asked, err := questions()
	if err != nil {
		return false, err
	}
	seen, err := readEvidence(dir)
	if err != nil {
		return false, err
	}
	s := span{server: w.prometheus, from: w.began, to: time.Now(), functions: []string{standing}}
	for _, fault := range seen.gather(ctx, s, asked) {
		w.fail("%s", fault)
	}
	broken, err := w.prometheus.Broken(ctx)
	if err != nil {
		return false, err
	}
	for rule, why := range broken {
		w.fail("rule %s: %s", rule, why)
	}
	if err := w.traced(ctx); err != nil {
		w.fail("exemplars: %v", err)
	}
	unprovoked, err := readQuiet(true)
	if err != nil {
		return false, err
	}
	missing := seen.missing(w.out, asked, unprovoked)
	seen.summary(w.out, asked)
	return !w.failed && missing == 0, nil
}

// traced returns no error if durations of calls have traces as exemplars.
func (w *harness) traced(ctx context.Context) error {
	const selector = "windlass_gateway_invocation_duration_seconds_bucket"
	all, err := w.prometheus.Exemplars(ctx, selector, w.began, time.Now())
	if err != nil {
		return err
	}
	for _, labels := range all {
		if labels["trace_id"] == "" {
			return fmt.Errorf("one of %s has the labels %v", selector, labels)
		}
	}
	if len(all) == 0 {
		return fmt.Errorf("%s has none", selector)
	}
	w.say("exemplars=%d", len(all))
	return nil
}
