package terminal

import (
	"fmt"
	"slices"
	"strings"

	"charm.land/lipgloss/v2"
	"github.com/charmbracelet/x/ansi"

	"github.com/windlass-dev/windlass/internal/monitor"
)

// The styles. Colours are of the terminal's own palette, so that they can be read on
// light and on dark.
var (
	usual    = lipgloss.NewStyle()
	faint    = lipgloss.NewStyle().Faint(true)
	bold     = lipgloss.NewStyle().Bold(true)
	title    = lipgloss.NewStyle().Bold(true).Foreground(lipgloss.Cyan)
	good     = lipgloss.NewStyle().Foreground(lipgloss.Green)
	notable  = lipgloss.NewStyle().Foreground(lipgloss.Yellow)
	bad      = lipgloss.NewStyle().Foreground(lipgloss.Red)
	rising   = lipgloss.NewStyle().Foreground(lipgloss.Blue)
	selected = lipgloss.NewStyle().Reverse(true)
)

// cell is one field of a table.
type cell struct {
	text  string
	style lipgloss.Style
}

// column is one of a table of items.
type column[T any] struct {
	title string
	// least and most are how wide it is; it never is narrower than its title.
	least, most int
	// left says that its texts begin where it does.
	left bool
	// rank is in which order columns go from narrow screens, the largest first;
	// those of rank 0 stay.
	rank int
	// by is the order of functions that it shows, if it shows any.
	by   monitor.Order
	cell func(T) cell
}

// gap is between two columns.
const gap = 2

// fit leaves the columns that have room in a width, and says how wide each is. Those
// that may be wider share what is left, the first ones first.
func fit[T any](columns []column[T], width int) (fitting []column[T], widths []int) {
	fitting = append(fitting, columns...)
	for {
		needed, worst := -gap, -1
		for i, c := range fitting {
			needed += c.least + gap
			if c.rank > 0 && (worst < 0 || c.rank > fitting[worst].rank) {
				worst = i
			}
		}
		if needed <= width || worst < 0 {
			return fitting, grow(fitting, width-needed)
		}
		fitting = append(fitting[:worst:worst], fitting[worst+1:]...)
	}
}

func grow[T any](columns []column[T], room int) []int {
	widths := make([]int, len(columns))
	for i, c := range columns {
		widths[i] = c.least + min(max(room, 0), max(0, c.most-c.least))
		room -= widths[i] - c.least
	}
	return widths
}

// line writes cells in columns. One that is selected has no other style, so that it
// can be read.
func line[T any](columns []column[T], widths []int, cells func(i int) cell, chosen bool) string {
	var out strings.Builder
	for i, c := range columns {
		at := cells(i)
		text := ansi.Truncate(at.text, widths[i], "…")
		pad := strings.Repeat(" ", max(0, widths[i]-ansi.StringWidth(text)))
		if !chosen {
			text = at.style.Render(text)
		}
		if c.left {
			text += pad
		} else {
			text = pad + text
		}
		if i > 0 {
			out.WriteString(strings.Repeat(" ", gap))
		}
		out.WriteString(text)
	}
	if chosen {
		return selected.Render(out.String())
	}
	return strings.TrimRight(out.String(), " ")
}

// head is the line of titles. The column that the functions are sorted by says so.
func head[T any](columns []column[T], widths []int, by monitor.Order, reverse bool) string {
	return line(columns, widths, func(i int) cell {
		c := columns[i]
		if by == "" || c.by != by {
			return cell{c.title, faint}
		}
		mark := "▾"
		if reverse {
			mark = "▴"
		}
		if c.left {
			return cell{c.title + mark, bold}
		}
		return cell{mark + c.title, bold}
	}, false)
}

// layout is what the columns of functions depend on.
type layout struct {
	// names is how long the longest name is. Names have their namespaces if there are
	// several.
	names      int
	namespaces bool
	// status is needed where a function cannot run, and revisions where one has several.
	status, revisions bool
	sparks            int
}

// functionColumns are of functions. On 80 characters all fit that say what calls find.
func functionColumns(l layout) []column[*monitor.Function] {
	names := max(10, l.names)
	columns := []column[*monitor.Function]{
		{title: "FUNCTION", least: min(names, 14), most: names, left: true, by: monitor.ByName, cell: func(f *monitor.Function) cell {
			style := usual
			if f.Broken != "" {
				style = bad
			}
			if l.namespaces {
				return cell{f.Namespace + "/" + f.Name, style}
			}
			return cell{f.Name, style}
		}},
		{title: "STATUS", least: 11, most: 17, left: true, rank: 1, cell: status},
		{title: "REVISIONS", least: 15, most: 29, left: true, rank: 4, cell: revisions},
		{title: "QUEUE", least: 6, by: monitor.ByQueue, cell: func(f *monitor.Function) cell { return number(f.Queued, notable) }},
		{title: "OLDEST", least: 7, rank: 6, cell: func(f *monitor.Function) cell { return waited(f.OldestWait) }},
		{title: "BUSY", least: 4, rank: 3, cell: func(f *monitor.Function) cell { return number(f.Instances.Busy, good) }},
		{title: "IDLE", least: 5, rank: 3, by: monitor.ByInstances, cell: func(f *monitor.Function) cell { return number(f.Instances.Idle, usual) }},
		{title: "STARTING", least: 8, rank: 8, cell: func(f *monitor.Function) cell { return number(f.Instances.Creating, rising) }},
		{title: "LEAVING", least: 7, rank: 11, cell: func(f *monitor.Function) cell { return number(f.Instances.Leaving, usual) }},
		{title: "CALLS/S", least: 8, rank: 1, by: monitor.ByRate, cell: func(f *monitor.Function) cell { return rate(f.Rate, usual) }},
		{title: "ERR/S", least: 6, rank: 5, by: monitor.ByErrors, cell: func(f *monitor.Function) cell { return rate(f.Errors, bad) }},
		{title: "P50", least: 7, rank: 7, cell: func(f *monitor.Function) cell { return cell{formatSeconds(f.P50), usual} }},
		{title: "P99", least: 7, rank: 2, by: monitor.ByP99, cell: func(f *monitor.Function) cell { return cell{formatSeconds(f.P99), usual} }},
		{title: "RECENT CALLS", least: l.sparks, left: true, rank: 10, cell: func(f *monitor.Function) cell { return cell{spark(f.Recent, l.sparks), rising} }},
		{title: "LAST DECISION", least: 16, most: 22, left: true, rank: 9, cell: func(f *monitor.Function) cell { return cell{decidedLast(f.Last), decisionStyle(f.Last)} }},
	}
	return slices.DeleteFunc(columns, func(c column[*monitor.Function]) bool {
		return c.title == "STATUS" && !l.status || c.title == "REVISIONS" && !l.revisions
	})
}

// columnHelp says what stands in the columns of functions.
func columnHelp() [][2]string {
	return [][2]string{
		{"STATUS", "why a function cannot run, if one cannot"},
		{"REVISIONS", "instances of each, if a function has several"},
		{"QUEUE OLDEST", "calls that wait, and how long the first has waited"},
		{"BUSY IDLE", "instances that run a call, and instances that could"},
		{"STARTING LEAVING", "instances that are not ready yet, and that stop"},
		{"CALLS/S ERR/S", "answers per second, and those from 500 or broken off"},
		{"P50 P99", "time that 50 % and 99 % of the calls took at most"},
		{"RECENT CALLS", "calls per interval, the last one on the right"},
		{"LAST DECISION", "instances launched or cancelled, and the reason"},
	}
}

func status(f *monitor.Function) cell {
	if f.Broken != "" {
		return cell{f.Broken, bad}
	}
	return cell{"ready", faint}
}

// severalRevisions tells whether any of the functions has more than one.
func severalRevisions(functions []monitor.Function) bool {
	return slices.ContainsFunc(functions, func(f monitor.Function) bool { return len(f.Revisions) > 0 })
}

func revisions(f *monitor.Function) cell {
	style := usual
	var words []string
	for i := range f.Revisions {
		words = append(words, f.Revisions[i].Words())
		if f.Revisions[i].Broken != "" {
			style = bad
		}
	}
	return cell{strings.Join(words, " "), style}
}

func decisionStyle(d *monitor.Decision) lipgloss.Style {
	switch {
	case d == nil || !d.Changed:
		return faint
	case d.Launched == 0 && d.Cancelled == 0:
		return notable
	}
	return usual
}

func number(n int, style lipgloss.Style) cell {
	if n == 0 {
		return cell{"0", faint}
	}
	return cell{fmt.Sprint(n), style}
}

func rate(r float64, style lipgloss.Style) cell {
	if r == 0 {
		return cell{"0", faint}
	}
	return cell{perSecond(r), style}
}

// longWait is from when on a wait is worth a look, in seconds.
const longWait = 1

func waited(seconds float64) cell {
	if seconds > longWait {
		return cell{formatSeconds(seconds), bad}
	}
	return cell{formatSeconds(seconds), usual}
}

// orderColumns say how nodes order calls. A node without a node agent has dashes.
func orderColumns() []column[*monitor.Node] {
	of := func(show func(o *monitor.NodeOrder) cell) func(*monitor.Node) cell {
		return func(n *monitor.Node) cell {
			if n.Order == nil {
				return cell{"-", faint}
			}
			return show(n.Order)
		}
	}
	return []column[*monitor.Node]{
		{title: "MODE", least: 4, left: true, cell: of(func(o *monitor.NodeOrder) cell {
			if o.Busy {
				return cell{o.Mode(), notable}
			}
			return cell{o.Mode(), good}
		})},
		{title: "WAITING", least: 7, cell: of(func(o *monitor.NodeOrder) cell { return number(o.Waiting, notable) })},
		{title: "ON CORES", least: 8, rank: 3, cell: of(func(o *monitor.NodeOrder) cell {
			return cell{fmt.Sprintf("%d/%d", o.Holding, o.Cores), usual}
		})},
		{title: "LOW", least: 4, rank: 2, cell: of(func(o *monitor.NodeOrder) cell { return number(o.Low, usual) })},
	}
}

// batchColumns say what batch work of nodes gets, and where it may be kept back, what that costs it. A
// node without batch work has dashes.
func batchColumns(coLocated bool) []column[*monitor.Node] {
	of := func(show func(b *monitor.NodeBatch) cell) func(*monitor.Node) cell {
		return func(n *monitor.Node) cell {
			if n.Order == nil || n.Order.Batch == nil {
				return cell{"-", faint}
			}
			return show(n.Order.Batch)
		}
	}
	columns := []column[*monitor.Node]{
		{title: "BATCH", least: 5, rank: 1, cell: of(func(b *monitor.NodeBatch) cell { return cell{fmt.Sprintf("%.1f", b.Cores), usual} })},
		{title: "FROZEN", least: 6, rank: 2, cell: of(func(b *monitor.NodeBatch) cell { return number(b.Frozen, notable) })},
		{title: "RESERVED", least: 8, rank: 3, cell: of(func(b *monitor.NodeBatch) cell { return number(b.Reserved, notable) })},
	}
	if !coLocated {
		return columns[:1]
	}
	return columns
}

// nodeHelp says what stands in the columns of nodes.
func nodeHelp() [][2]string {
	return [][2]string{
		{"MODE", "busy: more threads want to run than there are cores"},
		{"WAITING", "calls that wait for a core"},
		{"ON CORES", "calls that have a core, of the cores for calls"},
		{"LOW", "instances that get what others leave of the cores"},
		{"BATCH", "cores that batch instances and filler pods use"},
		{"FROZEN RESERVED", "batch instances that are stopped, and cores without batch"},
	}
}

// ordered tells whether any of the nodes orders its calls.
func ordered(nodes []monitor.Node) bool {
	return slices.ContainsFunc(nodes, func(n monitor.Node) bool { return n.Order != nil })
}

// batchOn tells whether any of the nodes has batch work, and whether any keeps it back for others.
func batchOn(nodes []monitor.Node) (batch, coLocated bool) {
	for _, n := range nodes {
		if n.Order != nil && n.Order.Batch != nil {
			batch, coLocated = true, coLocated || n.Order.Batch.CoLocated
		}
	}
	return batch, coLocated
}

// nodeColumns are of nodes with names at most so long. Where nodes order calls there are more, and more
// where they have batch work.
func nodeColumns(names int, nodes []monitor.Node) []column[*monitor.Node] {
	const width = 20
	share := func(resource string) func(n *monitor.Node) cell {
		return func(n *monitor.Node) cell {
			v, known := n.Requested[resource]
			if !known {
				return cell{"unknown", faint}
			}
			style := good
			switch {
			case v > 0.95:
				style = bad
			case v > 0.8:
				style = notable
			}
			return cell{fmt.Sprintf("%3.0f %% %s", v*100, bar(v, width)), style}
		}
	}
	columns := []column[*monitor.Node]{
		{title: "NODE", least: 10, most: max(10, names), left: true, cell: func(n *monitor.Node) cell { return cell{n.Name, usual} }},
		{title: "INSTANCES", least: 9, cell: func(n *monitor.Node) cell { return number(n.Instances, usual) }},
		{title: "CPU REQUESTED", least: width + 6, left: true, rank: 4, cell: share("cpu")},
		{title: "MEMORY REQUESTED", least: width + 6, left: true, rank: 5, cell: share("memory")},
	}
	var order []column[*monitor.Node]
	if ordered(nodes) {
		order = orderColumns()
	}
	if batch, coLocated := batchOn(nodes); batch {
		order = append(order, batchColumns(coLocated)...)
	}
	return slices.Insert(columns, 2, order...)
}
