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
repetitions. Of several revisions, it shows that with the most calls at the moment,
and says which one. The scheduler that owns the function keeps the last 33 decisions, for
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
	if e.output == "json" && !e.follow {
		account.Decisions = account.Decisions[max(0, len(account.Decisions)-e.last):]
		return s.printObject(account, "json")
	}
	p := decisionPrinter{decisions: s, e: e, shown: make(map[teller]decisionlog.ReportEntry)}
	if account.Revisions < 2 {
		p.subject = tellerOf(&account)
	}
	if err := p.print(&account); err != nil {
		return err
	}
	s.noteProblems(fn, &account)
	if !e.follow {
		return nil
	}
	return s.whileRead(func(ctx context.Context) error { return p.follow(ctx, h, key) })(ctx)
}

// teller numbers decisions: a scheduler does so for each revision.
type teller struct{ scheduler, revision string }

func tellerOf(account *decisionlog.Report) teller { return teller{account.Scheduler, account.Revision} }

// decisionPrinter prints each decision once, from whichever scheduler it comes.
type decisionPrinter struct {
	*decisions
	e explanation
	// shown has the last printed decision of each teller.
	shown map[teller]decisionlog.ReportEntry
	// subject is whose decisions are printed, as far as the reader knows.
	subject teller
}

// print prints the decisions of a report that are new.
func (p *decisionPrinter) print(account *decisionlog.Report) error {
	from := tellerOf(account)
	last, known := p.shown[from]
	fresh := account.Decisions
	if known {
		fresh = newDecisions(fresh, last)
	} else {
		fresh = fresh[max(0, len(fresh)-p.e.last):]
	}
	if len(fresh) == 0 {
		return nil
	}
	p.shown[from] = fresh[len(fresh)-1]
	if from != p.subject && p.e.output != "json" {
		fmt.Fprintf(p.Out, "%s:\n", printable(account.Subject()))
	}
	p.subject = from
	for _, d := range fresh {
		line := p.decisionLine(d, true)
		if p.e.output == "json" {
			text, err := json.Marshal(toldDecision{from.scheduler, from.revision, d})
			if err != nil {
				return err
			}
			line = string(text)
		}
		if _, err := fmt.Fprintln(p.Out, line); err != nil {
			return err
		}
	}
	return nil
}

// toldDecision is a decision with its teller.
type toldDecision struct {
	Scheduler string `json:"scheduler,omitempty"`
	Revision  string `json:"revision,omitempty"`
	decisionlog.ReportEntry
}

// newDecisions are those after the last one that was printed. A scheduler that has restarted under its name
// numbers them from 1 again, and then all are new.
func newDecisions(decisions []decisionlog.ReportEntry, last decisionlog.ReportEntry) []decisionlog.ReportEntry {
	for i, d := range decisions {
		switch {
		case d.Number == last.Number && !d.At.Equal(last.At):
			return decisions
		case d.Number > last.Number:
			return decisions[i:]
		}
	}
	if n := len(decisions); n > 0 && decisions[n-1].Number < last.Number {
		return decisions
	}
	return nil
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

// follow prints decisions that are new, until ctx ends or the function is
// gone. The scheduler may change meanwhile, or be away for a moment.
func (p *decisionPrinter) follow(ctx context.Context, h decisionGetter, key invocation.FunctionKey) error {
	// --last is for what was decided before.
	p.e.last = max(p.e.last, lastDecisions)
	ticker := time.NewTicker(followInterval)
	defer ticker.Stop()
	away := trouble{finder: p.finder}
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
		if err := p.print(&account); err != nil {
			return err
		}
	}
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
