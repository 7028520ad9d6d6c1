package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/windlass-dev/windlass/api/v1alpha1"
	"github.com/windlass-dev/windlass/internal/monitor"
	"github.com/windlass-dev/windlass/pkg/autoscaler/decisionlog"
	"github.com/windlass-dev/windlass/pkg/invocation"
)

const (
	// lastDecisions is how many are shown unless something else is said.
	lastDecisions = 10
	// followInterval is how often explain -f asks for new decisions.
	followInterval = time.Second
	// decisionTimeout is how long describe waits for the last decision, which is only a
	// part of its output.
	decisionTimeout = 5 * time.Second
)

// explanation is what explain was asked for.
type explanation struct {
	output string
	last   int
	follow bool
}

func (e explanation) validate() error {
	if err := checkOutput(e.output, "table", "json"); err != nil {
		return err
	}
	if e.last < 1 {
		return usagef("--last %d: write how many decisions to show, at least 1", e.last)
	}
	return nil
}

// decisions shows the decisions on functions, with the reasons.
type decisions struct{ *finder }

func (s *decisions) explainCommand() *cobra.Command {
	var e explanation
	cmd := &cobra.Command{
		Use:   "explain NAME [-n NAMESPACE] [--last N] [-f] [-o table|json]",
		Short: "Explain scaling decisions of a function",
		Long: `Explain the last scaling decisions of a function: what changed, why, and on which
numbers.

It shows a decision that changed something or had a new reason, and counts the
repetitions. The scheduler that owns the function keeps the last 33 decisions, for
as long as it runs.`,
		Args:              oneName,
		ValidArgsFunction: s.completeNames,
		RunE: run(func(cmd *cobra.Command, args []string) error {
			if err := e.validate(); err != nil {
				return err
			}
			key, err := s.key(args[0])
			if err != nil {
				return err
			}
			t, err := s.target(cmd.Context())
			if err != nil {
				return err
			}
			if err := t.clusterOnly("windlass-namespace", s.flags.windlassNamespace != ""); err != nil {
				return err
			}
			return s.explainFunction(cmd.Context(), t, t.key(key), e)
		}),
	}
	cmd.Flags().StringVarP(&e.output, "output", "o", "table", "`format`: table or json")
	cmd.Flags().IntVar(&e.last, "last", lastDecisions, "show the last `N` decisions")
	cmd.Flags().BoolVarP(&e.follow, "follow", "f", false, "keep printing new decisions until Ctrl-C")
	cmd.Flags().StringVar(&s.flags.windlassNamespace, "windlass-namespace", "", "`namespace` that Windlass runs in (default: windlass finds it)")
	return cmd
}

func (s *decisions) explainFunction(ctx context.Context, t *target, key invocation.FunctionKey, e explanation) error {
	fn, err := t.Get(ctx, key)
	if err != nil {
		return s.explainNotFound(ctx, t, key, err)
	}
	h := t.DecisionGetter()
	defer h.Close()
	account, err := h.Decisions(ctx, key)
	if err != nil {
		return err
	}
	account.Decisions = account.Decisions[max(0, len(account.Decisions)-e.last):]
	if e.output == "json" && !e.follow {
		return s.printObject(account, "json")
	}
	if err := s.printDecisions(account.Decisions, e.output); err != nil {
		return err
	}
	s.noteProblems(fn, &account)
	if !e.follow {
		return nil
	}
	return s.whileRead(func(ctx context.Context) error { return s.followDecisions(ctx, h, key, account, e.output) })(ctx)
}

// noteProblems says what decisions do not: why there are none, and what keeps the
// function from running.
func (s *decisions) noteProblems(fn *v1alpha1.Function, account *decisionlog.Report) {
	if _, ok := account.Last(); !ok {
		fmt.Fprintln(s.Err, printable(account.NoDecisions(s.clock)))
	}
	if w := account.LastCoreWait; w != nil {
		fmt.Fprintf(s.Err, "%s, %s ago\n", printable(w.String()), age(w.At, s.now()))
	}
	ready := readyOf(fn)
	switch {
	case account.Problem != "":
		fmt.Fprintf(s.Err, "instances do not start: %s; see %s\n", printable(account.Problem), s.rewriteCommands("windlass describe "+s.shortName(fn.Key())))
	case ready.Status == metav1.ConditionFalse:
		fmt.Fprintf(s.Err, "the function is not ready: %s: %s; see %s\n", printable(ready.Reason), firstLine(printable(ready.Message)), s.rewriteCommands("windlass describe "+s.shortName(fn.Key())))
	}
}

// followDecisions prints decisions that are new, until ctx ends or the function is
// gone. Whoever decides may change meanwhile, or be away for a moment.
func (s *decisions) followDecisions(ctx context.Context, h decisionGetter, key invocation.FunctionKey, known decisionlog.Report, output string) error {
	ticker := time.NewTicker(followInterval)
	defer ticker.Stop()
	var shown time.Time
	if last, ok := known.Last(); ok {
		shown = last.At
	}
	away := trouble{finder: s.finder}
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
		}
		account, err := h.Decisions(ctx, key)
		switch {
		case ctx.Err() != nil:
			return nil
		case isNotFound(err):
			return err
		case err != nil:
			away.note(err)
			continue
		}
		away.note(nil)
		fresh := after(account.Decisions, shown)
		if len(fresh) > 0 {
			shown = fresh[len(fresh)-1].At
		}
		if err := s.printDecisions(fresh, output); err != nil {
			return err
		}
	}
}

// after are the decisions that were made first after a time.
func after(decisions []decisionlog.ReportEntry, at time.Time) []decisionlog.ReportEntry {
	for i, d := range decisions {
		if d.At.After(at) {
			return decisions[i:]
		}
	}
	return nil
}

// printDecisions prints one line for each.
func (s *decisions) printDecisions(decisions []decisionlog.ReportEntry, output string) error {
	for _, d := range decisions {
		line := s.decisionLine(d, true)
		if output == "json" {
			text, err := json.Marshal(d)
			if err != nil {
				return err
			}
			line = string(text)
		}
		if _, err := fmt.Fprintln(s.Out, line); err != nil {
			return err
		}
	}
	return nil
}

func (s *decisions) decisionLine(d decisionlog.ReportEntry, painted bool) string {
	colour := ""
	switch {
	case d.Launched > 0 || d.Cancelled > 0:
		colour = green
	case d.Wanted > 0:
		colour = yellow
	}
	what := monitor.Printable(d.Summary)
	if painted {
		what = s.paint(s.Out, colour, what)
	}
	line := s.clock(d.At) + "  " + what + ": " + monitor.Printable(d.Why)
	if d.Times > 1 {
		line += fmt.Sprintf(" · repeated %d× until %s", d.Times, s.clock(d.Until))
	}
	return line
}

// decisionsOf asks the function's scheduler for its decisions.
func decisionsOf(ctx context.Context, t *target, fn *v1alpha1.Function) (decisionlog.Report, error) {
	ctx, cancel := context.WithTimeout(ctx, decisionTimeout)
	defer cancel()
	h := t.DecisionGetter()
	defer h.Close()
	return h.Decisions(ctx, fn.Key())
}

// lastDecision is that on a function, in a line.
func (s *decisions) lastDecision(account decisionlog.Report, err error) string {
	if err != nil {
		return "unknown: " + firstLine(s.rewriteCommands(err.Error()))
	}
	if last, ok := account.Last(); ok {
		return s.decisionLine(last, false)
	}
	return account.NoDecisions(s.clock)
}
