package cli

import (
	"cmp"
	"context"
	"encoding/json"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/windlass-dev/windlass/internal/monitor"
	"github.com/windlass-dev/windlass/internal/monitor/terminal"
)

const (
	// topEvery is how often what is shown is renewed, unless something else is said,
	// and leastEvery is how often it may be at most.
	topEvery   = time.Second
	leastEvery = 200 * time.Millisecond
)

// topFlags are the flags of top.
type topFlags struct {
	all          bool
	sort, filter string
	interval     time.Duration
	once, nodes  bool
	output       string
}

// overview shows all functions at work.
type overview struct{ *finder }

func (w *overview) topCommand() *cobra.Command {
	var flags topFlags
	cmd := &cobra.Command{
		Use:   "top [-A | -n NAMESPACE] [--sort ORDER] [--filter TEXT] [--interval TIME] [--nodes] [--once] [-o table|json]",
		Short: "Watch functions, instances and nodes at work",
		Long: `Watch functions, instances and nodes at work: what waits, what runs, what
starts, how fast calls are answered, and what was decided last and why.

Keys sort (w r e l i n), filter (/), show one function (enter) or the nodes
(tab), pause (space) and quit (q); ? lists them. Rates, p50 and p99 are of the
last ten seconds.

Without a terminal, or with --once, top prints one table after an interval: of
functions, or with --nodes of nodes. With -o json, it prints a line of JSON after each interval until Ctrl-C, and with
--once one document; times are in seconds, rates per second.`,
		Args: noArgs,
		RunE: run(func(cmd *cobra.Command, _ []string) error {
			if err := flags.validate(); err != nil {
				return err
			}
			if flags.all && w.namespace != "" {
				return usagef("-A and -n exclude each other; remove one of the two")
			}
			t, err := w.target(cmd.Context())
			if err != nil {
				return err
			}
			if err := t.clusterOnly("windlass-namespace", w.flags.windlassNamespace != ""); err != nil {
				return err
			}
			return w.top(cmd.Context(), t, flags)
		}),
	}
	cmd.Flags().BoolVarP(&flags.all, "all-namespaces", "A", false, "show the functions of all namespaces")
	cmd.Flags().StringVar(&flags.sort, "sort", string(monitor.ByQueue), "`order` of the functions: "+orders())
	cmd.Flags().StringVar(&flags.filter, "filter", "", "show only functions whose names contain a `text`")
	cmd.Flags().DurationVar(&flags.interval, "interval", topEvery, "`time` from one view to the next")
	cmd.Flags().BoolVar(&flags.nodes, "nodes", false, "show nodes first: their mode, what waits there for cores, and how full they are")
	cmd.Flags().BoolVar(&flags.once, "once", false, "print one table or document, and end")
	cmd.Flags().StringVarP(&flags.output, "output", "o", "table", "`format`: table or json")
	cmd.Flags().StringVar(&w.flags.windlassNamespace, "windlass-namespace", "", "`namespace` that Windlass runs in (default: windlass finds it)")
	return cmd
}

func orders() string {
	var names []string
	for _, order := range monitor.Orders() {
		names = append(names, string(order))
	}
	return strings.Join(names, ", ")
}

func (f topFlags) validate() error {
	if err := checkOutput(f.output, "table", "json"); err != nil {
		return err
	}
	if !slices.Contains(monitor.Orders(), monitor.Order(f.sort)) {
		return usagef("--sort %s is not known; write one of %s", f.sort, orders())
	}
	if f.interval < leastEvery {
		return usagef("--interval %v is too short; write at least %v", f.interval, leastEvery)
	}
	return nil
}

// top shows what goes on until its user has seen enough.
func (w *overview) top(ctx context.Context, t *target, flags topFlags) error {
	place := "on this machine"
	if t.inCluster() {
		place = "of " + t.context
	}
	config := terminal.Config{
		Place: place, Interval: flags.interval, Order: monitor.Order(flags.sort),
		Choice: monitor.Choice{Namespace: cmp.Or(w.namespace, t.namespace), Text: flags.filter}, Nodes: flags.nodes,
	}
	if flags.all {
		config.Choice.Namespace = ""
	}
	o := t.Snapshotter(w.now)
	defer o.Close()
	if flags.output == "json" && !flags.once {
		away := trouble{finder: w.finder}
		show := func(v monitor.View) error { return json.NewEncoder(w.Out).Encode(v.Of(config.Choice, config.Order)) }
		return w.whileRead(func(ctx context.Context) error { return terminal.Stream(ctx, o, flags.interval, show, away.note) })(ctx)
	}
	if flags.once || !isTerminal(w.Out) || !isTerminal(w.In) || w.getenv("TERM") == "dumb" {
		view, err := terminal.Two(ctx, o, flags.interval)
		if err != nil {
			return err
		}
		if flags.output == "json" {
			return w.printObject(view.Of(config.Choice, config.Order), "json")
		}
		return terminal.Print(w.Out, view, config)
	}
	h := t.DecisionGetter()
	defer h.Close()
	return terminal.Run(ctx, config, terminal.Deps{Source: o, Decisions: h, In: w.In, Out: w.Out, Environ: os.Environ()})
}
