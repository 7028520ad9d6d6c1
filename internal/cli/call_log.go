package cli

import (
	"cmp"
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/windlass-dev/windlass/pkg/gateway/timeline"
	"github.com/windlass-dev/windlass/pkg/invocation"
)

// printCall prints the log of one call.
func (l *logPrinter) printCall(ctx context.Context, text string) error {
	id, err := invocation.ParseID(strings.ToLower(text))
	if err != nil {
		return usagef("--invocation %s: %w; the id is what a call's answer has in Windlass-Invocation-Id", text, err)
	}
	t, err := l.target(ctx)
	if err != nil {
		return err
	}
	if err := t.clusterOnly("windlass-namespace", l.flags.windlassNamespace != ""); err != nil {
		return err
	}
	story, err := t.LookUpCall(ctx, id)
	if err != nil {
		return err
	}
	if story.Record != nil {
		l.table(l.Out, l.callRows(*story.Record, story.Node))
	}
	for _, line := range story.Lines {
		fmt.Fprintf(l.Out, "%s | %s\n", line.Source, line.Text)
	}
	for _, note := range story.Notes {
		fmt.Fprintln(l.Err, note)
	}
	return nil
}

// callRows show how a call ended and where its time went. The node is that of its instance, if it
// is known.
func (l *logPrinter) callRows(account invocation.Record, node string) [][]cell {
	answer := fmt.Sprintf("%d, executed: %s", account.Code, account.Executed)
	switch {
	case account.Broken:
		answer += ", broken off by " + account.Reason
	case account.Reason != "":
		answer += ", " + account.Reason
	}
	if account.Cold {
		answer += ", the first call of its instance"
	}
	rows := [][]cell{
		cells("function", l.shortName(account.Function)),
		cells("invocation", account.ID.String()),
		cells("answer", answer),
		cells("received", account.Received.UTC().Format("2006-01-02T15:04:05.000Z07:00")),
	}
	if account.CID != "" {
		instance := string(account.CID)
		if node != "" {
			instance += " on " + nodeNamed(node)
		}
		if account.Attempt > 1 {
			instance += fmt.Sprintf(", the %d. that had it", account.Attempt)
		}
		rows = append(rows, cells("instance", instance))
	}
	if account.Trace != "" {
		rows = append(rows, cells("trace", account.Trace))
	}
	for _, s := range account.Phases {
		took := fmt.Sprintf("%.3f ms", float64(s.Took)/float64(time.Millisecond))
		if s.Phase == timeline.Core.String() {
			took += ", waited for a core of " + cmp.Or(nodeNamed(node), "its node")
		}
		rows = append(rows, cells(s.Phase, took))
	}
	return rows
}

// nodeNamed is "node NAME"; empty if there is no name.
func nodeNamed(name string) string {
	if name == "" {
		return ""
	}
	return "node " + name
}
