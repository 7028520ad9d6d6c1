package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/windlass-dev/windlass/api/v1alpha1"
	"github.com/windlass-dev/windlass/pkg/fpcs/history"
	"github.com/windlass-dev/windlass/pkg/invoke"
)

const (
	// lastDecisions is how many are shown unless something else is said.
	lastDecisions = 10
	// followEvery is how often those who decide are asked for more.
	followEvery = time.Second
	// decisionTime is how long describe waits for the last decision, which is not all
	// that it shows.
	decisionTime = 5 * time.Second
)

// explanation is what explain was asked for.
type explanation struct {
	output string
	last   int
	follow bool
}

func (e explanation) check() error {
	if err := checkOutput(e.output, "table", "json"); err != nil {
		return err
	}
	if e.last < 1 {
		return usagef("--last %d: write how many decisions to show, at least 1", e.last)
	}
	return nil
}

func (a *app) explainCommand() *cobra.Command {
	var e explanation
	cmd := &cobra.Command{
		Use:   "explain NAME [-n NAMESPACE] [--last N] [-f] [-o table|json]",
		Short: "Explain scaling decisions of a function",
		Long: `Explain the last scaling decisions of a function: what changed, why, and what the
decision was made on.

A decision is shown if it changed something, or if its reason is another one
than before; the same one again is counted. The scheduler that decides on the
function keeps the last 33, for as long as it runs.`,
		Args:              oneName,
		ValidArgsFunction: a.completeNames,
		RunE: run(func(cmd *cobra.Command, args []string) error {
			if err := e.check(); err != nil {
				return err
			}
			key, err := a.key(args[0])
			if err != nil {
				return err
			}
			t, err := a.target(cmd.Context())
			if err != nil {
				return err
			}
			if err := t.clusterOnly("windlass-namespace", a.flags.windlassNamespace != ""); err != nil {
				return err
			}
			return a.explainFunction(cmd.Context(), t, t.key(key), e)
		}),
	}
	cmd.Flags().StringVarP(&e.output, "output", "o", "table", "`format`: table or json")
	cmd.Flags().IntVar(&e.last, "last", lastDecisions, "show the last `N` decisions")
	cmd.Flags().BoolVarP(&e.follow, "follow", "f", false, "go on with new decisions until Ctrl-C")
	cmd.Flags().StringVar(&a.flags.windlassNamespace, "windlass-namespace", "", "`namespace` that Windlass runs in (default: it is looked for)")
	return cmd
}

func (a *app) explainFunction(ctx context.Context, t *target, key invoke.FunctionKey, e explanation) error {
	fn, err := t.Get(ctx, key)
	if err != nil {
		return a.explain(ctx, t, key, err)
	}
	h := t.Historian()
	defer h.Close()
	account, err := h.Decisions(ctx, key)
	if err != nil {
		return err
	}
	account.Decisions = account.Decisions[max(0, len(account.Decisions)-e.last):]
	if e.output == "json" && !e.follow {
		return a.printObject(account, "json")
	}
	if err := a.printDecisions(account.Decisions, e.output); err != nil {
		return err
	}
	a.noteProblems(fn, &account)
	if !e.follow {
		return nil
	}
	return a.followDecisions(ctx, h, key, account, e.output)
}

// noteProblems says what decisions do not: why there are none, and what keeps the
// function from running.
func (a *app) noteProblems(fn *v1alpha1.Function, account *history.Account) {
	if _, ok := account.Last(); !ok {
		fmt.Fprintln(a.Err, account.Silence(a.clock))
	}
	ready := readyOf(fn)
	switch {
	case account.Problem != "":
		fmt.Fprintf(a.Err, "instances do not start: %s; see %s\n", account.Problem, a.retell("windlass describe "+a.short(fn.Key())))
	case ready.Status == metav1.ConditionFalse:
		fmt.Fprintf(a.Err, "the function is not ready: %s: %s; see %s\n", ready.Reason, firstLine(ready.Message), a.retell("windlass describe "+a.short(fn.Key())))
	}
}

// followDecisions prints decisions that are new, until ctx ends or the function is
// gone. Whoever decides may change meanwhile, or be away for a moment.
func (a *app) followDecisions(ctx context.Context, h historian, key invoke.FunctionKey, known history.Account, output string) error {
	ticker := time.NewTicker(followEvery)
	defer ticker.Stop()
	var shown time.Time
	if last, ok := known.Last(); ok {
		shown = last.At
	}
	trouble := ""
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
			if err.Error() != trouble {
				trouble = err.Error()
				fmt.Fprintf(a.Err, "%s; asking again\n", a.retell(trouble))
			}
			continue
		}
		trouble = ""
		fresh := after(account.Decisions, shown)
		if len(fresh) > 0 {
			shown = fresh[len(fresh)-1].At
		}
		if err := a.printDecisions(fresh, output); err != nil {
			return err
		}
	}
}

// after are the decisions that were made first after a time.
func after(decisions []history.Told, at time.Time) []history.Told {
	for i, d := range decisions {
		if d.At.After(at) {
			return decisions[i:]
		}
	}
	return nil
}

// printDecisions prints one line for each.
func (a *app) printDecisions(decisions []history.Told, output string) error {
	for _, d := range decisions {
		line := a.decisionLine(d, true)
		if output == "json" {
			text, err := json.Marshal(d)
			if err != nil {
				return err
			}
			line = string(text)
		}
		if _, err := fmt.Fprintln(a.Out, line); err != nil {
			return err
		}
	}
	return nil
}

func (a *app) decisionLine(d history.Told, painted bool) string {
	colour := ""
	switch {
	case d.Ordered > 0 || d.Withdrawn > 0:
		colour = green
	case d.Wanted > 0:
		colour = yellow
	}
	what := d.What
	if painted {
		what = a.paint(a.Out, colour, what)
	}
	line := a.clock(d.At) + "  " + what + ": " + d.Why
	if d.Times > 1 {
		line += fmt.Sprintf(" · repeated %d× until %s", d.Times, a.clock(d.Until))
	}
	return line
}

// clock writes a time as people here read it, and the day only if it is another.
func (a *app) clock(at time.Time) string {
	now := a.now()
	at = at.In(now.Location())
	if at.Format(time.DateOnly) == now.Format(time.DateOnly) {
		return at.Format("15:04:05.0")
	}
	return at.Format(time.DateOnly + " 15:04:05")
}

// account is what is told of a function.
func (a *app) account(ctx context.Context, t *target, fn *v1alpha1.Function) (history.Account, error) {
	ctx, cancel := context.WithTimeout(ctx, decisionTime)
	defer cancel()
	h := t.Historian()
	defer h.Close()
	return h.Decisions(ctx, fn.Key())
}

// lastDecision is that on a function, in a line.
func (a *app) lastDecision(account history.Account, err error) string {
	if err != nil {
		return "unknown: " + firstLine(a.retell(err.Error()))
	}
	if last, ok := account.Last(); ok {
		return a.decisionLine(last, false)
	}
	return account.Silence(a.clock)
}
