package terminal

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"charm.land/bubbles/v2/key"
	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/x/ansi"

	"github.com/windlass-dev/windlass/internal/monitor"
	"github.com/windlass-dev/windlass/pkg/autoscaler/decisionlog"
	"github.com/windlass-dev/windlass/pkg/invocation"
)

// detail is the screen of one function.
type detail struct {
	key invocation.FunctionKey
	// account has its decisions; heard says that there was an answer, and
	// trouble why there is nothing newer.
	account decisionlog.Report
	heard   bool
	trouble string
	// down is how many lines of what stands below the facts are above the screen.
	down int
}

// setDecisions takes decisions, unless they are of a function shown before.
func (c *detail) setDecisions(msg decisionsMsg) {
	if msg.key != c.key {
		return
	}
	if msg.err != nil {
		c.trouble = monitor.Printable(msg.err.Error())
		return
	}
	c.account, c.heard, c.trouble = msg.account, true, ""
}

func (m model) pressDetail(msg tea.KeyPressMsg) (model, tea.Cmd) {
	switch {
	case key.Matches(msg, m.keys.back):
		return m.closeDetail(), m.selectDecisions(nil)
	case key.Matches(msg, m.keys.down):
		m.detail.down++
	case key.Matches(msg, m.keys.up):
		m.detail.down--
	case key.Matches(msg, m.keys.top):
		m.detail.down = 0
	}
	m.detail.down = min(max(0, m.detail.down), max(0, len(m.detail.below(m))-1))
	return m, nil
}

func (m model) closeDetail() model {
	m.at, m.detail = allFunctions, detail{}
	return m
}

// current is the function as last sampled; nil if it is gone.
func (c *detail) current(m model) *monitor.Function {
	i := slices.IndexFunc(m.view.Functions, func(f monitor.Function) bool { return f.Key() == c.key })
	if i < 0 {
		return nil
	}
	return &m.view.Functions[i]
}

// draw are the lines of the function.
func (c *detail) draw(m model) []string {
	lines := []string{bold.Render(c.key.String()), ""}
	f := c.current(m)
	if f == nil {
		return append(lines, "it is not there any more; esc goes back")
	}
	if f.Broken != "" {
		lines[0] += bad.Render("  cannot run: "+f.Broken) + faint.Render("  windlass describe "+c.key.String()+" says more")
	}
	lines = append(lines, facts(f, m.width)...)
	rest := c.below(m)
	return append(append(lines, ""), rest[min(c.down, len(rest)):]...)
}

const (
	// factLines is how many lines stand above what is below the facts.
	factLines = 14
	// fewDecisions is how many lines of decisions are worth more than phases.
	fewDecisions = 6
)

// below are the phases and the decisions. Where there is not enough room for both, the
// decisions come first.
func (c *detail) below(m model) []string {
	f := c.current(m)
	if f == nil {
		return nil
	}
	phases, decisions, failure := phaseLines(f, m.width), c.decisionLines(m), c.failureLines(m)
	if m.height-factLines-below >= len(failure)+len(phases)+fewDecisions {
		return slices.Concat(failure, phases, decisions)
	}
	return slices.Concat(failure, decisions, []string{""}, phases)
}

// fewWords is how many lines of a failure's detail are worth more than decisions.
const fewWords = 5

// failureLines say how an instance of the function failed last.
func (c *detail) failureLines(m model) []string {
	failure := c.account.LastFailure
	if failure == nil {
		return nil
	}
	lines := []string{bold.Render("Last failure") + "  " + bad.Render(failure.Code) + faint.Render("  "+ago(failure.At, m.view.At))}
	for line := range strings.Lines(failure.Detail) {
		if len(lines) > fewWords {
			lines = append(lines, faint.Render("windlass logs "+c.key.String()+" says more"))
			break
		}
		lines = append(lines, ansi.Truncate(monitor.Printable(strings.TrimRight(line, "\n")), m.width, "…"))
	}
	return append(lines, "")
}

// facts say what the function does and how it is planned.
func facts(f *monitor.Function, width int) []string {
	calls := []string{perSecond(f.Rate) + "/s"}
	if f.Errors > 0 {
		calls = append(calls, bad.Render(perSecond(f.Errors)+" errors/s"))
	}
	if f.Cold > 0 {
		calls = append(calls, perSecond(f.Cold)+" cold/s")
	}
	if f.P50 > 0 {
		calls = append(calls, "p50 "+formatSeconds(f.P50), "p99 "+formatSeconds(f.P99))
	}
	waiting := "none"
	if f.Queued > 0 {
		waiting = notable.Render(fmt.Sprintf("%d, the first for %s", f.Queued, formatSeconds(f.OldestWait)))
	}
	needed := "none at the moment"
	if f.Plan.Required > 0 {
		needed = plural(f.Plan.Required, "instance", "instances")
	}
	if f.Plan.ArrivalRate > 0 {
		needed += fmt.Sprintf(" for %s calls/s", perSecond(f.Plan.ArrivalRate))
	}
	if f.Plan.Horizon > 0 {
		needed += " within " + formatSeconds(f.Plan.Horizon)
	}
	if f.Plan.MeanExecution > 0 {
		needed += "; an execution takes " + formatSeconds(f.Plan.MeanExecution)
	}
	starts := fmt.Sprintf("%d launched, %d started, %d failed", f.Plan.Launched, f.Plan.Started, f.Plan.Failed)
	if f.Plan.MeanStart > 0 {
		starts += "; a start takes " + formatSeconds(f.Plan.MeanStart)
	}
	instances := inStates(f.Instances)
	if r := revisions(f); r.text != "" {
		instances += "; by revision " + r.style.Render(r.text)
	}
	return []string{
		fact("calls", strings.Join(calls, ", ")),
		fact("recently", rising.Render(strings.TrimLeft(spark(f.Recent, min(60, max(10, width-14))), " "))),
		fact("waiting", waiting),
		fact("instances", instances),
		fact("needed", needed),
		fact("starts", starts),
	}
}

func fact(name, text string) string { return faint.Render(fmt.Sprintf("%-12s", name)) + text }

// phaseLines say where the time goes: of calls and of cold starts, beside each other
// where there is room.
func phaseLines(f *monitor.Function, width int) []string {
	const each = 58
	calls := phaseBlock("Where a call's time goes", f.Phases)
	starts := phaseBlock("Where a cold start's time goes", f.ColdPhases)
	if len(calls) == 0 || len(starts) == 0 || width < 2*each {
		return append(calls, starts...)
	}
	lines := make([]string, max(len(calls), len(starts)))
	for i := range lines {
		left, right := "", ""
		if i < len(calls) {
			left = calls[i]
		}
		if i < len(starts) {
			right = starts[i]
		}
		lines[i] = left + strings.Repeat(" ", max(0, each-ansi.StringWidth(left))) + right
	}
	return lines
}

func phaseBlock(title string, phases []monitor.Phase) []string {
	const width = 30
	if len(phases) == 0 {
		return nil
	}
	lines := []string{bold.Render(title)}
	for _, s := range phases {
		lines = append(lines, fmt.Sprintf("%s %8s  %s", faint.Render(fmt.Sprintf("%-11s", s.Name)), formatSeconds(s.Mean), rising.Render(bar(s.Share, width))))
	}
	return append(lines, "")
}

// decisionLines are the decisions, the last one first.
func (c *detail) decisionLines(m model) []string {
	lines := []string{bold.Render("Last decisions")}
	if c.trouble != "" {
		lines = append(lines, bad.Render("not told: "+c.trouble))
	}
	switch {
	case !c.heard && c.trouble != "":
		return lines
	case !c.heard:
		return append(lines, faint.Render("asking"))
	case len(c.account.Decisions) == 0:
		return append(lines, monitor.Printable(c.account.NoDecisions(func(at time.Time) string { return at.Local().Format("15:04:05") })))
	}
	const indent = 12
	for _, told := range slices.Backward(c.account.Decisions) {
		d := monitor.NewDecision(told)
		text := decided(&d)
		if d.Times > 1 {
			text += fmt.Sprintf(" · repeated %d×", d.Times)
		}
		for i, part := range strings.Split(ansi.Wordwrap(text, max(20, m.width-indent), ""), "\n") {
			when := ""
			if i == 0 {
				when = ago(d.Until, m.view.At)
			}
			lines = append(lines, faint.Render(fmt.Sprintf("%-*s", indent, when))+part)
		}
	}
	return lines
}
