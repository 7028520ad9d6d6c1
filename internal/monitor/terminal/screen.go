package terminal

import (
	"fmt"
	"slices"
	"strings"
	"time"

	tea "charm.land/bubbletea/v2"
	"charm.land/lipgloss/v2"
	"github.com/charmbracelet/x/ansi"

	"github.com/windlass-dev/windlass/internal/monitor"
)

const (
	// above is how many lines stand above a table's rows, with its head, and
	// below how many below them.
	above = 6
	below = 2
)

// sparks is how many intervals a function's row shows.
func (m model) sparks() int {
	const few, wide = 16, 180
	if m.width < wide {
		return few
	}
	return few * 3 / 2
}

// rows is how many rows of a table fit.
func (m model) rows() int { return max(1, m.height-above-below) }

// View implements tea.Model.
func (m model) View() tea.View {
	v := tea.NewView(m.draw())
	v.AltScreen = true
	v.WindowTitle = "windlass top"
	return v
}

// draw is the whole screen.
func (m model) draw() string {
	lines := m.heading()
	switch {
	case m.helping:
		lines = append(lines, m.helpLines()...)
	case m.at == oneFunction:
		lines = append(lines, m.detail.draw(m)...)
	case m.at == allNodes:
		lines = append(lines, m.nodeLines()...)
	default:
		lines = append(lines, m.functionLines()...)
	}
	bottom := m.bottom()
	room := max(0, m.height-len(bottom))
	lines = lines[:min(len(lines), room)]
	lines = append(lines, make([]string, room-len(lines))...)
	lines = append(lines, bottom...)
	for i := range lines {
		lines[i] = ansi.Truncate(lines[i], m.width, "…")
	}
	return strings.Join(lines, "\n")
}

// helpLines say what keys do and what columns mean.
func (m model) helpLines() []string {
	lines := append(strings.Split(m.help.FullHelpView(m.keys.full()), "\n"), "")
	columns := columnHelp()
	if m.at == allNodes {
		columns = nodeHelp()
	}
	for _, c := range columns {
		lines = append(lines, faint.Render(fmt.Sprintf("%-18s", c[0]))+c[1])
	}
	return lines
}

// totals are of the functions that can be listed: of one namespace, or all.
func (m model) totals() monitor.Totals {
	if m.config.Choice.Namespace == "" {
		return m.view.Totals
	}
	return monitor.Sum(monitor.Choose(m.view.Functions, monitor.Choice{Namespace: m.config.Choice.Namespace}))
}

// heading are the lines that every screen begins with.
func (m model) heading() []string {
	t := m.totals()
	left := title.Render("windlass top") + faint.Render(" "+m.config.Place)
	right := m.view.At.Format("15:04:05")
	if m.paused {
		right = notable.Render("paused ") + right
	}
	first := left + strings.Repeat(" ", max(1, m.width-ansi.StringWidth(left)-ansi.StringWidth(right))) + right
	return []string{first, "", m.callsLine(t), m.stateLine(t), ""}
}

func (m model) callsLine(t monitor.Totals) string {
	rate := perSecond(t.Rate)
	if m.view.Over == 0 {
		rate = "–"
	}
	parts := []string{bold.Render(rate) + " calls/s"}
	errors := faint.Render("0 errors/s")
	if t.Errors > 0 {
		errors = bad.Render(perSecond(t.Errors) + " errors/s")
	}
	parts = append(parts, errors)
	if t.Cold > 0 {
		parts = append(parts, perSecond(t.Cold)+" cold/s")
	}
	if t.P50 > 0 {
		parts = append(parts, "p50 "+bold.Render(formatSeconds(t.P50)), "p99 "+bold.Render(formatSeconds(t.P99)))
	}
	// What happened lately takes the room that is left.
	const few, wide = 8, 30
	room := min(wide, m.width-ansi.StringWidth(joined(parts))-1)
	if recent := strings.TrimLeft(spark(t.Recent, max(room, 0)), " "); room >= few && recent != "" {
		parts[0] += " " + rising.Render(recent)
	}
	return joined(parts)
}

func joined(parts []string) string { return strings.Join(parts, faint.Render("  ·  ")) }

// stateLine says the most important first: where there is no room, the last is left out.
func (m model) stateLine(t monitor.Totals) string {
	waiting := faint.Render("no call waits")
	if t.Queued > 0 {
		waiting = notable.Render(plural(t.Queued, "call waits", "calls wait") + ", the first for " + formatSeconds(t.OldestWait))
	}
	parts := []string{waiting}
	if t.Broken > 0 {
		parts = append(parts, bad.Render(plural(t.Broken, "function cannot run", "functions cannot run")))
	}
	functions := plural(t.Functions, "function", "functions")
	if m.view.Over > 0 {
		functions += fmt.Sprintf(", %d called", t.Called)
	}
	states := len(parts)
	parts = append(parts, inStates(t.Instances), functions)
	if nodes := len(m.view.Nodes); nodes > 0 {
		parts = append(parts, plural(nodes, "node", "nodes"))
	}
	if ansi.StringWidth(joined(parts[:states+1])) > m.width {
		parts[states] = plural(t.Instances.All(), "instance", "instances")
	}
	for len(parts) > 1 && ansi.StringWidth(joined(parts)) > m.width {
		parts = parts[:len(parts)-1]
	}
	return joined(parts)
}

// inStates says how many instances there are, and how many are in which state.
func inStates(i monitor.Instances) string {
	var states []string
	for _, s := range []struct {
		n     int
		word  string
		style lipgloss.Style
	}{{i.Busy, "busy", good}, {i.Idle, "idle", usual}, {i.Creating, "starting", rising}, {i.Leaving, "leaving", usual}} {
		if s.n > 0 {
			states = append(states, s.style.Render(fmt.Sprintf("%d %s", s.n, s.word)))
		}
	}
	text := plural(i.All(), "instance", "instances")
	if len(states) > 0 {
		text += ": " + strings.Join(states, ", ")
	}
	return text
}

// functionLines are the table of functions.
func (m model) functionLines() []string {
	functions := m.functions()
	names := 0
	for i := range functions {
		names = max(names, ansi.StringWidth(functions[i].Name))
		if m.config.Choice.Namespace == "" {
			names = max(names, ansi.StringWidth(functions[i].Namespace+"/"+functions[i].Name))
		}
	}
	columns, widths := fit(functionColumns(layout{
		names: min(names, max(16, m.width/5)), namespaces: m.config.Choice.Namespace == "",
		status:    slices.ContainsFunc(functions, func(f monitor.Function) bool { return f.Broken != "" }),
		revisions: severalRevisions(functions), sparks: m.sparks(),
	}), m.width)
	lines := []string{head(columns, widths, m.order, m.reverse)}
	if len(functions) == 0 {
		return append(lines, faint.Render(m.nothing()))
	}
	at := m.index(functions)
	for i := m.offset; i < min(len(functions), m.offset+m.rows()); i++ {
		lines = append(lines, line(columns, widths, func(j int) cell { return columns[j].cell(&functions[i]) }, i == at))
	}
	return lines
}

// nothing says why no function is listed.
func (m model) nothing() string {
	switch {
	case m.filter.Value() != "":
		return "no function's name contains " + m.filter.Value() + "; esc shows all"
	case m.config.Choice.Namespace != "" && len(m.view.Functions) > 0:
		return "there is no function in the namespace " + m.config.Choice.Namespace + "; -A shows those of all"
	}
	return "there is no function yet"
}

// nodeLines are the table of nodes.
func (m model) nodeLines() []string {
	nodes, names := slices.Clone(m.view.Nodes), 0
	for _, n := range nodes {
		names = max(names, ansi.StringWidth(n.Name))
	}
	columns, widths := fit(nodeColumns(names, nodes), m.width)
	lines := []string{head(columns, widths, "", false)}
	if len(nodes) == 0 {
		return append(lines, faint.Render("no node is known"))
	}
	slices.SortStableFunc(nodes, busyFirst)
	for _, n := range nodes[m.nodesAbove:min(len(nodes), m.nodesAbove+m.rows())] {
		lines = append(lines, line(columns, widths, func(i int) cell { return columns[i].cell(&n) }, false))
	}
	if more := len(nodes) - m.nodesAbove - m.rows(); more > 0 {
		lines[len(lines)-1] = faint.Render(fmt.Sprintf("and %d more below, ↓ leads there", more+1))
	}
	return lines
}

// busyFirst orders nodes so that those on which calls wait come first, then those that are busy.
func busyFirst(a, b monitor.Node) int {
	weight := func(n monitor.Node) int {
		switch {
		case n.Order == nil:
			return 0
		case n.Order.Waiting > 0:
			return 2
		case n.Order.Busy:
			return 1
		}
		return 0
	}
	return weight(b) - weight(a)
}

// silence says for how long nothing has answered, if that is longer than a few intervals.
func (m model) silence() string {
	const few, least = 3, 3 * time.Second
	silent := m.now.Sub(m.answered)
	if m.answered.IsZero() || silent <= max(few*m.config.Interval, least) {
		return ""
	}
	return fmt.Sprintf(" (no answer for %d s)", int(silent.Seconds()))
}

// bottom are the last lines: what is wrong, or else what was filtered, and the keys.
func (m model) bottom() []string {
	note := ""
	switch {
	case m.trouble != "":
		note = bad.Render("not up to date: " + m.trouble + m.silence())
	case m.silence() != "":
		note = bad.Render("not up to date" + m.silence())
	case len(m.view.Troubles) > 0:
		note = notable.Render("not all is shown: " + strings.Join(slices.Compact(slices.Clone(m.view.Troubles)), "; "))
	}
	if m.filter.Focused() {
		return []string{note, m.filter.View()}
	}
	keys := m.help.ShortHelpView(m.keys.short(m.at))
	if text := m.filter.Value(); text != "" && m.at == allFunctions {
		keys = notable.Render("/"+text) + faint.Render("  ·  ") + keys
	}
	return []string{note, keys}
}
