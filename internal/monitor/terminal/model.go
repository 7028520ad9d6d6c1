package terminal

import (
	"math"
	"time"

	"charm.land/bubbles/v2/help"
	"charm.land/bubbles/v2/key"
	"charm.land/bubbles/v2/textinput"
	tea "charm.land/bubbletea/v2"

	"github.com/windlass-dev/windlass/internal/monitor"
	"github.com/windlass-dev/windlass/pkg/invocation"
)

// screen is the shown screen.
type screen int

const (
	allFunctions screen = iota
	oneFunction
	allNodes
)

// model is all that the screen depends on. It implements tea.Model.
type model struct {
	config Config
	keys   keyMap
	// watchDecisions says whose decisions are wanted.
	watchDecisions func(*invocation.FunctionKey)

	width, height int

	watcher *monitor.Watcher
	// view is what is shown: the last one, or that of when it was paused.
	view monitor.View
	// trouble is why there is no newer one; empty if there is.
	trouble string
	// answered is the time of the last Sample, and now the time on the wall.
	answered, now time.Time
	paused        bool

	at      screen
	helping bool
	order   monitor.Order
	reverse bool
	filter  textinput.Model
	cursor  invocation.FunctionKey
	offset  int
	// nodesAbove is how many nodes are above the screen.
	nodesAbove int
	help       help.Model
	detail     detail
}

// newModel shows functions on a screen whose size is not known yet.
func newModel(c Config, turnTo func(*invocation.FunctionKey)) model {
	filter := textinput.New()
	filter.Prompt = "/"
	filter.SetValue(c.Choice.Text)
	filter.SetVirtualCursor(true)
	bottom := help.New()
	// The usual colours are too faint for keys that one looks for.
	bottom.Styles = help.Styles{
		Ellipsis: faint, ShortKey: bold, ShortDesc: usual, ShortSeparator: faint, FullKey: bold, FullDesc: usual, FullSeparator: faint,
	}
	at := allFunctions
	if c.Nodes {
		at = allNodes
	}
	return model{
		config: c, at: at, keys: keys(), watchDecisions: turnTo, width: 80, height: 24,
		watcher: &monitor.Watcher{}, order: c.Order, filter: filter, help: bottom,
	}
}

// Init implements tea.Model.
func (m model) Init() tea.Cmd { return everySecond() }

// clockMsg is the time on the wall.
type clockMsg time.Time

func everySecond() tea.Cmd {
	return tea.Tick(time.Second, func(at time.Time) tea.Msg { return clockMsg(at) })
}

// Update implements tea.Model.
func (m model) Update(msg tea.Msg) (tea.Model, tea.Cmd) {
	var cmd tea.Cmd
	switch msg := msg.(type) {
	case tea.WindowSizeMsg:
		m.width, m.height = msg.Width, msg.Height
		m.help.SetWidth(msg.Width)
	case sampleMsg:
		m, cmd = m.see(msg)
	case decisionsMsg:
		m.detail.setDecisions(msg)
	case clockMsg:
		m.now, cmd = time.Time(msg), everySecond()
	case tea.KeyPressMsg:
		m, cmd = m.press(msg)
	default:
		m.filter, cmd = m.filter.Update(msg)
	}
	m.scroll()
	return m, cmd
}

// see takes a Sample, or the news that there is none.
func (m model) see(msg sampleMsg) (model, tea.Cmd) {
	if msg.err != nil {
		m.trouble = monitor.Printable(msg.err.Error())
		return m, nil
	}
	m.trouble, m.answered = "", msg.sample.At
	// What is paused is the picture: rates go on being of the last ten seconds.
	if view := m.watcher.See(msg.sample); !m.paused {
		m.view = view
	}
	return m, nil
}

func (m model) press(msg tea.KeyPressMsg) (model, tea.Cmd) {
	switch {
	case msg.String() == "ctrl+c":
		return m, tea.Quit
	case msg.String() == "ctrl+z":
		return m, tea.Suspend
	case m.filter.Focused():
		return m.type_(msg)
	case m.helping:
		m.helping = false
		return m, nil
	case key.Matches(msg, m.keys.quit):
		return m, tea.Quit
	case key.Matches(msg, m.keys.help):
		m.helping = true
	case key.Matches(msg, m.keys.pause):
		m.paused = !m.paused
	case key.Matches(msg, m.keys.nodes):
		return m.toggleNodes()
	case m.at == oneFunction:
		return m.pressDetail(msg)
	case m.at == allFunctions:
		return m.pressFunctions(msg)
	case key.Matches(msg, m.keys.back):
		m.at = allFunctions
	default:
		// The last line says how many are below.
		m.nodesAbove = m.moved(msg, m.nodesAbove, m.rows()-1)
	}
	return m, nil
}

// type_ is for keys while a filter is being written.
func (m model) type_(msg tea.KeyPressMsg) (model, tea.Cmd) {
	var cmd tea.Cmd
	switch msg.String() {
	case "enter":
		m.filter.Blur()
	case "esc":
		m.filter.Blur()
		m.filter.Reset()
	default:
		m.filter, cmd = m.filter.Update(msg)
	}
	return m, cmd
}

// toggleNodes goes from functions to nodes and back.
func (m model) toggleNodes() (model, tea.Cmd) {
	switch m.at {
	case oneFunction:
		return m.closeDetail(), m.selectDecisions(nil)
	case allNodes:
		m.at = allFunctions
	default:
		m.at = allNodes
	}
	return m, nil
}

func (m model) pressFunctions(msg tea.KeyPressMsg) (model, tea.Cmd) {
	for by, binding := range m.keys.sort {
		if key.Matches(msg, binding) {
			m.reverse = by == m.order && !m.reverse
			m.order = by
			return m, nil
		}
	}
	switch {
	case key.Matches(msg, m.keys.filter):
		return m, m.filter.Focus()
	case key.Matches(msg, m.keys.back):
		m.filter.Reset()
	case key.Matches(msg, m.keys.open):
		return m.openDetail()
	default:
		m.move(msg)
	}
	return m, nil
}

// functions are the listed functions.
func (m model) functions() []monitor.Function {
	functions := monitor.Choose(m.view.Functions, monitor.Choice{Namespace: m.config.Choice.Namespace, Text: m.filter.Value()})
	monitor.Sort(functions, m.order, m.reverse)
	return functions
}

// index is the place of the function that is selected; the first one if it is gone.
func (m model) index(functions []monitor.Function) int {
	for i := range functions {
		if functions[i].Key() == m.cursor {
			return i
		}
	}
	return 0
}

// move moves to another function.
func (m *model) move(msg tea.KeyPressMsg) {
	functions := m.functions()
	if len(functions) == 0 {
		return
	}
	i := m.moved(msg, m.index(functions), m.rows())
	m.cursor = functions[min(max(i, 0), len(functions)-1)].Key()
}

// moved is the line of a table to which a key moves from another one, with so many lines on a page. It may
// lie outside of the table.
func (m *model) moved(msg tea.KeyPressMsg, from, page int) int {
	switch {
	case key.Matches(msg, m.keys.up):
		return from - 1
	case key.Matches(msg, m.keys.down):
		return from + 1
	case key.Matches(msg, m.keys.pageUp):
		return from - page
	case key.Matches(msg, m.keys.pageDown):
		return from + page
	case key.Matches(msg, m.keys.top):
		return 0
	case key.Matches(msg, m.keys.bottom):
		return math.MaxInt
	}
	return from
}

// scroll keeps the function that is selected on the screen, and the screen of nodes full.
func (m *model) scroll() {
	m.nodesAbove = max(0, min(m.nodesAbove, len(m.view.Nodes)-m.rows()))
	functions := m.functions()
	i, rows := m.index(functions), m.rows()
	m.offset = min(max(m.offset, i-rows+1), i)
	m.offset = max(0, min(m.offset, len(functions)-rows))
}

// openDetail opens the function that is selected.
func (m model) openDetail() (model, tea.Cmd) {
	functions := m.functions()
	if len(functions) == 0 {
		return m, nil
	}
	m.cursor = functions[m.index(functions)].Key()
	m.at, m.detail = oneFunction, detail{key: m.cursor}
	return m, m.selectDecisions(&m.detail.key)
}

// selectDecisions tells the poller whose decisions are wanted.
func (m model) selectDecisions(to *invocation.FunctionKey) tea.Cmd {
	if to != nil {
		key := *to
		to = &key
	}
	return func() tea.Msg {
		m.watchDecisions(to)
		return nil
	}
}
