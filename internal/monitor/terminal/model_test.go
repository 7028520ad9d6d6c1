package terminal

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/x/ansi"
	"github.com/google/go-cmp/cmp"

	"github.com/windlass-dev/windlass/internal/monitor"
	"github.com/windlass-dev/windlass/pkg/autoscaler/decisionlog"
	"github.com/windlass-dev/windlass/pkg/invocation"
)

var update = flag.Bool("update", false, "rewrite the golden files")

var noon = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// sight is a View with something in every place.
func sight() monitor.View {
	wave := func(high float64) (values []float64) {
		for i := range 40 {
			values = append(values, high*float64(i%8)/7)
		}
		return values
	}
	backlog := &monitor.Decision{At: noon.Add(-3 * time.Second), Until: noon.Add(-3 * time.Second), Times: 1, Reason: "Backlog", Launched: 2, Changed: true,
		What: "+2 instances (Backlog)", Why: "the queue would take the instances too long; 14 waiting"}
	v := monitor.View{
		At: noon, Over: 10,
		Totals: monitor.Totals{Functions: 4, Called: 2, Load: monitor.Load{Queued: 14, OldestWait: 1.25, InFlight: 20, Rate: 61.4, Errors: 0.3, Cold: 0.2,
			P50: 0.0052, P99: 0.41, Instances: monitor.Instances{Creating: 2, Busy: 5, Idle: 3, Leaving: 1}, Recent: wave(80)}},
		Functions: []monitor.Function{
			{Namespace: "default", Name: "hello", Called: true, Load: monitor.Load{Rate: 48.1, P50: 0.005, P99: 0.012, Instances: monitor.Instances{Busy: 1, Idle: 3}, Recent: wave(60)},
				Plan: monitor.Plan{MeanExecution: 0.0049, MeanStart: 0.31, Launched: 4, Started: 4}},
			{Namespace: "default", Name: "idle"},
			{Namespace: "default", Name: "a-function-with-a-rather-long-name", Load: monitor.Load{Instances: monitor.Instances{Leaving: 1}}},
			{Namespace: "team", Name: "thumbnail", Called: true, Last: backlog,
				Load: monitor.Load{Queued: 14, OldestWait: 1.25, Rate: 13.3, Errors: 0.3, Cold: 0.2, P50: 0.21, P99: 0.41, Instances: monitor.Instances{Creating: 2, Busy: 4}, Recent: wave(20)},
				Plan: monitor.Plan{Required: 6, ArrivalRate: 14.2, Horizon: 0.5, MeanExecution: 0.2, MeanStart: 0.42, Launched: 7, Started: 4, Failed: 1},
				Phases: []monitor.Phase{{Name: "admit", Mean: 0.0001, Share: 0.0005}, {Name: "queue", Mean: 0.05, Share: 0.2}, {Name: "claim", Mean: 0.0004, Share: 0.002},
					{Name: "execute", Mean: 0.2, Share: 0.7}, {Name: "return", Mean: 0.001, Share: 0.004}},
				ColdPhases: []monitor.Phase{{Name: "decide", Mean: 0.05, Share: 0.1}, {Name: "create", Mean: 0.01, Share: 0.02}, {Name: "sandbox"},
					{Name: "containers", Mean: 0.1, Share: 0.2}, {Name: "ready", Mean: 0.3, Share: 0.6}, {Name: "hello", Mean: 0.01, Share: 0.02}, {Name: "claim", Mean: 0.03, Share: 0.06}}},
		},
		Nodes: []monitor.Node{
			{Name: "worker-1", Instances: 7, Requested: map[string]float64{"cpu": 0.55, "memory": 0.25}},
			{Name: "worker-2", Instances: 4, Requested: map[string]float64{"cpu": 0.97, "memory": 0.85}},
			{Name: "worker-3"},
		},
	}
	return v
}

// screenHarness presses keys and looks at the screen.
type screenHarness struct {
	t *testing.T
	m model
	// asked are whose decisions were wanted, "" for nobody's.
	asked []string
}

func play(t *testing.T, choice monitor.Choice) *screenHarness {
	p := &screenHarness{t: t}
	p.m = newModel(Config{Place: "on this machine", Interval: time.Second, Order: monitor.ByQueue, Choice: choice}, func(key *invocation.FunctionKey) {
		name := ""
		if key != nil {
			name = key.String()
		}
		p.asked = append(p.asked, name)
	})
	p.m.view = sight()
	p.tell(tea.WindowSizeMsg{Width: 160, Height: 20})
	return p
}

func (p *screenHarness) tell(msg tea.Msg) tea.Cmd {
	next, cmd := p.m.Update(msg)
	p.m = next.(model)
	return cmd
}

// press presses keys, such as enter or x, and does at once what they lead to.
func (p *screenHarness) press(keys ...string) *screenHarness {
	special := map[string]rune{"enter": tea.KeyEnter, "esc": tea.KeyEscape, "tab": tea.KeyTab, "up": tea.KeyUp, "down": tea.KeyDown,
		"pgdown": tea.KeyPgDown, "pgup": tea.KeyPgUp, "end": tea.KeyEnd, "space": tea.KeySpace, "backspace": tea.KeyBackspace}
	for _, name := range keys {
		k := tea.Key{Code: special[name]}
		if k.Code == 0 {
			k = tea.Key{Code: rune(name[0]), Text: name}
		}
		if name == "space" {
			k.Text = " "
		}
		if cmd := p.tell(tea.KeyPressMsg(k)); cmd != nil && !p.m.filter.Focused() {
			cmd()
		}
	}
	return p
}

// screen is what is seen, without colours.
func (p *screenHarness) screen() string { return ansi.Strip(p.m.draw()) }

func (p *screenHarness) sees(wants ...string) {
	p.t.Helper()
	for _, want := range wants {
		if !strings.Contains(p.screen(), want) {
			p.t.Errorf("%q is not on the screen:\n%s", want, p.screen())
		}
	}
}

func (p *screenHarness) missing(none ...string) {
	p.t.Helper()
	for _, text := range none {
		if strings.Contains(p.screen(), text) {
			p.t.Errorf("%q is on the screen:\n%s", text, p.screen())
		}
	}
}

// order is the functions on the screen, from top to bottom.
func (p *screenHarness) order() (names []string) {
	for _, line := range strings.Split(p.screen(), "\n") {
		for _, f := range sight().Functions {
			if strings.HasPrefix(line, f.Namespace+"/"+f.Name) {
				names = append(names, f.Name)
			}
		}
	}
	return names
}

func TestScreensLookAsTheyShould(t *testing.T) {
	for name, tc := range map[string]struct {
		width, height int
		keys          []string
		account       *decisionlog.Report
	}{
		"functions-160":   {160, 14, nil, nil},
		"functions-220":   {220, 14, []string{"r"}, nil},
		"functions-100":   {100, 14, []string{"n", "n"}, nil},
		"functions-80":    {80, 14, nil, nil},
		"functions-60":    {60, 14, nil, nil},
		"functions-24":    {24, 12, nil, nil},
		"function-160":    {160, 40, []string{"enter"}, &decisionlog.Report{Decisions: told()}},
		"function-70":     {70, 40, []string{"enter"}, &decisionlog.Report{Decisions: told()}},
		"nodes-100":       {100, 14, []string{"tab"}, nil},
		"nodes-40":        {40, 14, []string{"tab"}, nil},
		"nodes-help-80":   {80, 24, []string{"tab", "?"}, nil},
		"help-80":         {80, 24, []string{"?"}, nil},
		"filter-100":      {100, 12, []string{"/", "t", "h"}, nil},
		"filtered-to-nil": {100, 12, []string{"/", "x", "q", "enter"}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			p := play(t, monitor.Choice{})
			p.tell(tea.WindowSizeMsg{Width: tc.width, Height: tc.height})
			p.press(tc.keys...)
			if tc.account != nil {
				p.tell(decisionsMsg{key: p.m.detail.key, account: *tc.account})
			}
			lines := strings.Split(p.screen(), "\n")
			if len(lines) != tc.height {
				t.Errorf("%d lines on a screen of %d", len(lines), tc.height)
			}
			for i, line := range lines {
				if ansi.StringWidth(line) > tc.width {
					t.Errorf("a line is wider than %d: %s", tc.width, line)
				}
				lines[i] = strings.TrimRight(line, " ")
			}
			golden(t, name, strings.Join(lines, "\n")+"\n")
		})
	}
}

// orderly is sight with nodes that order their calls, but one.
func orderly() monitor.View {
	v := sight()
	v.Nodes[0].Order = &monitor.NodeOrder{Busy: true, Cores: 4, Holding: 4, Waiting: 13, Low: 3}
	v.Nodes[1].Order = &monitor.NodeOrder{Cores: 16}
	return v
}

// filled is orderly with batch work on the first node, which is kept back if the nodes do that.
func filled(coLocated bool) monitor.View {
	v := orderly()
	batch := &monitor.NodeBatch{Cores: 1.62}
	if coLocated {
		batch = &monitor.NodeBatch{Cores: 0.04, CoLocated: true, Frozen: 2, Reserved: 3}
	}
	v.Nodes[0].Order.Batch = batch
	return v
}

func TestNodesThatOrderCallsLookAsTheyShould(t *testing.T) {
	for kind, view := range map[string]monitor.View{"ordered": orderly(), "batch": filled(false), "colocated": filled(true)} {
		for _, width := range []int{140, 120, 80, 60, 40} {
			if kind == "ordered" && (width == 140 || width == 60) {
				continue // as at 120 and 80
			}
			p := play(t, monitor.Choice{})
			p.m.view = view
			p.tell(tea.WindowSizeMsg{Width: width, Height: 14})
			p.press("tab")
			lines := strings.Split(p.screen(), "\n")
			for i, line := range lines {
				if ansi.StringWidth(line) > width {
					t.Errorf("a line is wider than %d: %s", width, line)
				}
				lines[i] = strings.TrimRight(line, " ")
			}
			golden(t, fmt.Sprintf("%s-%d", kind, width), strings.Join(lines, "\n")+"\n")
		}
	}
}

func TestNodesMayComeFirstAndArePrinted(t *testing.T) {
	m := newModel(Config{Place: "on this machine", Order: monitor.ByQueue, Nodes: true}, nil)
	if m.at != allNodes {
		t.Errorf("the first screen is %d", m.at)
	}
	var out strings.Builder
	if err := Print(&out, orderly(), Config{Order: monitor.ByName, Nodes: true}); err != nil {
		t.Fatal(err)
	}
	golden(t, "printed-nodes", out.String())
	out.Reset()
	if err := Print(&out, filled(true), Config{Order: monitor.ByName, Nodes: true}); err != nil {
		t.Fatal(err)
	}
	golden(t, "printed-batch", out.String())
}

func golden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", name+".txt")
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("-want +got, and -update rewrites it:\n%s", diff)
	}
}

// told are two decisions.
func told() []decisionlog.ReportEntry {
	return []decisionlog.ReportEntry{
		{Number: 1, At: noon.Add(-90 * time.Second), Until: noon.Add(-90 * time.Second), Times: 1, Summary: "+1 instance (FirstInstance)", Why: "first call; 0 instances, 1 waiting → node local"},
		{Number: 2, At: noon.Add(-9 * time.Second), Until: noon.Add(-3 * time.Second), Times: 7, Summary: "+2 instances (Backlog)",
			Why: "the queue would take the instances too long; 4 instances, 4 busy, 2 starting (a start takes 420 ms), 14 waiting (the first for 1.3 s); 14 calls/s × 200 ms need 6 instances within 500 ms"},
	}
}

func TestKeysSort(t *testing.T) {
	p := play(t, monitor.Choice{})
	p.tell(tea.WindowSizeMsg{Width: 220, Height: 20})
	long := "a-function-with-a-rather-long-name"
	for _, step := range []struct {
		key  string
		want []string
	}{
		{"n", []string{long, "hello", "idle", "thumbnail"}},
		{"n", []string{"thumbnail", "idle", "hello", long}},
		{"r", []string{"hello", "thumbnail", long, "idle"}},
		{"l", []string{"thumbnail", "hello", long, "idle"}},
		{"i", []string{"thumbnail", "hello", long, "idle"}},
		{"e", []string{"thumbnail", long, "hello", "idle"}},
		{"w", []string{"thumbnail", "hello", long, "idle"}},
	} {
		p.press(step.key)
		if diff := cmp.Diff(step.want, p.order()); diff != "" {
			t.Errorf("after %s (-want +got):\n%s", step.key, diff)
		}
	}
}

func TestTheCursorFollowsItsFunction(t *testing.T) {
	p := play(t, monitor.Choice{})
	p.press("n", "down") // hello
	p.press("r")         // which is now the first
	if p.m.cursor.Name != "hello" || p.m.index(p.m.functions()) != 0 {
		t.Errorf("the cursor is at %v", p.m.cursor)
	}
	p.press("end")
	if p.m.cursor.Name != "idle" {
		t.Errorf("at the end is %v", p.m.cursor)
	}
	p.press("down", "pgdown", "up", "g", "pgup")
	if p.m.index(p.m.functions()) != 0 {
		t.Errorf("at the top is %v", p.m.cursor)
	}
}

func TestTheScreenScrolls(t *testing.T) {
	p := play(t, monitor.Choice{})
	p.m.view.Functions = nil
	for i := range 100 {
		p.m.view.Functions = append(p.m.view.Functions, monitor.Function{Namespace: "default", Name: fmt.Sprintf("f%02d", i)})
	}
	p.press("n")
	p.sees("f00", "f11")
	p.missing("f12", "f99")
	p.press("end")
	p.sees("f88", "f99")
	p.missing("f87")
	p.press("up")
	p.sees("f99")
	p.tell(tea.WindowSizeMsg{Width: 100, Height: 9})
	p.sees("f98")
	p.missing("f97", "f99")
	p.press("pgup", "pgup")
	p.sees("f96")
	p.press("/", "f", "0", "3", "enter")
	p.sees("f03", "/f03")
	p.missing("f04")
	p.press("esc")
	p.sees("f96")
}

func TestFilteringAndNamespaces(t *testing.T) {
	p := play(t, monitor.Choice{Namespace: "team", Text: "THUMB"})
	p.sees("thumbnail", "/THUMB")
	p.missing("hello", "team/thumbnail")
	p.press("/", "q", "?")
	p.sees("/THUMBq?", "no function's name contains THUMBq?")
	p.press("esc", "n")
	p.sees("thumbnail")
	p = play(t, monitor.Choice{Namespace: "nobodys"})
	p.sees("there is no function in the namespace nobodys; -A shows those of all")
	p.press("enter", "down")
	p.sees("there is no function in the namespace nobodys")
	p = play(t, monitor.Choice{})
	p.m.view = monitor.View{}
	p.sees("there is no function yet")
}

func TestA3TheCloserViewSaysHowAnInstanceFailedLast(t *testing.T) {
	p := play(t, monitor.Choice{})
	p.tell(tea.WindowSizeMsg{Width: 60, Height: 50})
	p.press("enter")
	p.tell(decisionsMsg{key: p.m.detail.key, account: decisionlog.Report{Decisions: told(), LastFailure: &decisionlog.Failure{
		At: p.m.view.At.Add(-90 * time.Second), Code: "FunctionExited", Detail: "the function exited with status 3; its last log lines:\none\x1b]0;evil\x07\n2\n3\n4\nlater",
	}}})
	p.sees("Last failure  FunctionExited  90 s ago", "exited with status 3", "one?]0;evil?", "windlass logs team/thumbnail says more", "Last decisions")
	p.missing("later")
}

func TestLookingCloser(t *testing.T) {
	p := play(t, monitor.Choice{})
	p.tell(tea.WindowSizeMsg{Width: 160, Height: 50})
	p.press("enter")
	p.sees("team/thumbnail", "asking", "6 instances for 14 calls/s within 500 ms; an execution takes 200 ms", "7 launched, 4 started, 1 failed", "Where a cold start's time goes")
	p.tell(decisionsMsg{key: invocation.FunctionKey{Namespace: "default", Name: "hello"}, account: decisionlog.Report{Decisions: told()[:1]}})
	p.missing("FirstInstance")
	p.tell(decisionsMsg{key: p.m.detail.key, account: decisionlog.Report{Decisions: told()}})
	p.sees("90 s ago", "+1 instance (FirstInstance): first call", "3 s ago", "repeated 7×")
	p.tell(tea.WindowSizeMsg{Width: 160, Height: 20})
	p.sees("FirstInstance")
	p.missing("Where a call's time goes")
	p.press("down", "down", "down", "down")
	p.sees("Where a call's time goes")
	p.missing("FirstInstance")
	for range 50 {
		p.press("down")
	}
	p.press("g")
	p.sees("repeated 7×")
	p.tell(decisionsMsg{key: p.m.detail.key, err: errors.New("the scheduler is\x1b]0;evil\x07 away")})
	p.sees("not told: the scheduler is?]0;evil? away", "repeated 7×")
	p.tell(decisionsMsg{key: p.m.detail.key, account: decisionlog.Report{Calls: 0}})
	p.sees("no decisions yet: the function has not been called")
	p.press("esc")
	p.sees("FUNCTION", "hello")
	p.press("enter", "tab")
	if diff := cmp.Diff([]string{"team/thumbnail", "", "team/thumbnail", ""}, p.asked); diff != "" {
		t.Errorf("asked for (-want +got):\n%s", diff)
	}
	p.press("enter")
	p.m.view.Functions = nil
	p.sees("team/thumbnail", "it is not there any more")
}

func TestWhatIsWrongIsSaid(t *testing.T) {
	p := play(t, monitor.Choice{})
	p.tell(sampleMsg{err: errors.New("no Windlass\n runs")})
	p.sees("not up to date: no Windlass  runs", "hello")
	p.tell(sampleMsg{sample: monitor.Read(noon.Add(time.Second), nil, "gateway-1 does not answer", "gateway-1 does not answer")})
	p.sees("not all is shown: gateway-1 does not answer", "12:00:01")
	p.missing("not up to date", "answer; gateway")
}

func TestASilenceIsSaidToLast(t *testing.T) {
	p := play(t, monitor.Choice{})
	p.tell(sampleMsg{sample: monitor.Read(noon, nil)})
	p.tell(clockMsg(noon.Add(3 * time.Second)))
	p.missing("not up to date")
	if p.m.Init() == nil || p.tell(clockMsg(noon.Add(12*time.Second))) == nil {
		t.Error("the clock stops")
	}
	p.sees("not up to date (no answer for 12 s)")
	p.tell(sampleMsg{err: errors.New("no Windlass runs")})
	p.sees("not up to date: no Windlass runs (no answer for 12 s)")
	p.tell(sampleMsg{sample: monitor.Read(noon.Add(12*time.Second), nil)})
	p.missing("not up to date")
}

func TestAPausedPictureStays(t *testing.T) {
	p := play(t, monitor.Choice{})
	p.press("space")
	p.tell(sampleMsg{sample: monitor.Read(noon.Add(time.Minute), nil)})
	p.sees("paused 12:00:00", "hello")
	p.press("p")
	p.tell(sampleMsg{sample: monitor.Read(noon.Add(2*time.Minute), nil)})
	p.sees("12:02:00")
	p.missing("paused", "hello")
}

func TestQuitting(t *testing.T) {
	quits := func(p *screenHarness, k tea.Key) bool {
		cmd := p.tell(tea.KeyPressMsg(k))
		if cmd == nil {
			return false
		}
		_, quit := cmd().(tea.QuitMsg)
		return quit
	}
	q, ctrlC := tea.Key{Code: 'q', Text: "q"}, tea.Key{Code: 'c', Mod: tea.ModCtrl}
	for _, keys := range [][]string{nil, {"enter"}, {"tab"}} {
		if !quits(play(t, monitor.Choice{}).press(keys...), q) {
			t.Errorf("after %v, q does not quit", keys)
		}
	}
	p := play(t, monitor.Choice{}).press("/")
	if quits(p, q) || !quits(p, ctrlC) {
		t.Error("while a filter is written, q is a letter and ctrl+c quits")
	}
	p = play(t, monitor.Choice{}).press("?")
	p.sees("turn around")
	p.press("x")
	p.missing("turn around")
}

func TestNumbersInWords(t *testing.T) {
	for rate, want := range map[float64]string{0: "0", 0.04: "<0.1", 0.25: "0.2", 9.94: "9.9", 9.96: "10", 12345.6: "12346", 123456: "123k"} {
		if got := perSecond(rate); got != want {
			t.Errorf("%g a second is %q, want %q", rate, got, want)
		}
	}
	for d, want := range map[time.Duration]string{0: "now", time.Second: "now", 119 * time.Second: "119 s ago", 3 * time.Minute: "3 min ago", 5 * time.Hour: "5 h ago"} {
		if got := ago(noon.Add(-d), noon); got != want {
			t.Errorf("%v ago is %q, want %q", d, got, want)
		}
	}
	if got := spark([]float64{9, 0, 1, 4, 8}, 4); got != " ▁▄█" {
		t.Errorf("the spark is %q", got)
	}
	if got := spark([]float64{3}, 3); got != "  █" {
		t.Errorf("the spark is %q", got)
	}
	if got := bar(0.55, 10); got != "█████▌" {
		t.Errorf("the bar is %q", got)
	}
	if bar(7, 4) != "████" || bar(-1, 4) != "" {
		t.Error("a bar is longer than its width, or shorter than nothing")
	}
}

func TestA10FunctionsThatCannotRunAreRedAndSayWhy(t *testing.T) {
	p := play(t, monitor.Choice{})
	p.missing("STATUS", "cannot run")
	p.m.view.Functions[1].Broken = "StartFailed"
	p.m.view.Totals.Broken = 1
	for _, width := range []int{80, 160} {
		p.tell(tea.WindowSizeMsg{Width: width, Height: 20})
		p.sees("STATUS", "StartFailed", "1 function cannot run")
		if !strings.Contains(p.m.draw(), bad.Render("default/idle")) || !strings.Contains(p.m.draw(), bad.Render("StartFailed")) {
			t.Errorf("at %d characters, the function is not red:\n%s", width, p.m.draw())
		}
	}
	golden(t, "broken-80", onScreen(t, p, 80, 12))
	p.m.cursor = invocation.FunctionKey{Namespace: "default", Name: "idle"}
	p.press("enter")
	p.sees("default/idle", "cannot run: StartFailed", "windlass describe default/idle")
	v := p.m.view
	var out strings.Builder
	if err := Print(&out, v, Config{Order: monitor.ByName}); err != nil || !strings.Contains(out.String(), "StartFailed") {
		t.Errorf("%v:\n%s", err, out.String())
	}
}

func TestRevisionsOfAFunctionThatHasSeveralAreShown(t *testing.T) {
	p := play(t, monitor.Choice{})
	p.missing("REVISIONS", "by revision")
	p.m.view.Functions[3].Revisions = []monitor.Revision{
		{Revision: "00006", Instances: monitor.Instances{Creating: 2, Busy: 4}}, {Revision: "00007", Broken: "StartFailed"},
	}
	golden(t, "revisions-200", onScreen(t, p, 200, 12))
	p.press("down")
	if !strings.Contains(p.m.draw(), bad.Render("00006:6 00007:StartFailed")) {
		t.Errorf("a revision that cannot run is not red:\n%s", p.m.draw())
	}
	p.missing("cannot run")
	var out strings.Builder
	if err := Print(&out, p.m.view, Config{Order: monitor.ByName}); err != nil || !strings.Contains(out.String(), "00006:6 00007:StartFailed") {
		t.Errorf("%v:\n%s", err, out.String())
	}
	p.m.cursor = invocation.FunctionKey{Namespace: "team", Name: "thumbnail"}
	p.press("enter")
	p.tell(tea.WindowSizeMsg{Width: 160, Height: 30})
	p.sees("4 busy, 2 starting; by revision 00006:6 00007:StartFailed")
}

// onScreen is the screen at a size.
func onScreen(t *testing.T, p *screenHarness, width, height int) string {
	t.Helper()
	p.tell(tea.WindowSizeMsg{Width: width, Height: height})
	lines := strings.Split(p.screen(), "\n")
	for i := range lines {
		lines[i] = strings.TrimRight(lines[i], " ")
	}
	return strings.Join(lines, "\n") + "\n"
}

func TestA17EightyCharactersAreUsed(t *testing.T) {
	p := play(t, monitor.Choice{})
	p.tell(tea.WindowSizeMsg{Width: 80, Height: 24})
	p.sees("OLDEST", "ERR/S", "P50", "P99", "q quit")
	for _, line := range strings.Split(p.screen(), "\n") {
		if strings.HasSuffix(strings.TrimRight(line, " "), "…") {
			t.Errorf("cut off: %s", line)
		}
	}
	p.press("?")
	p.sees("calls that wait, and how long the first has waited", "LAST DECISION")
	p.press("?")
	p.tell(tea.WindowSizeMsg{Width: 160, Height: 24})
	p.sees("+2 Backlog")
	p.missing("the queue would take")
}

func TestA20TheHeadingIsAboutTheFunctionsBelow(t *testing.T) {
	p := play(t, monitor.Choice{})
	p.sees("4 functions, 2 called", "11 instances: 5 busy", "61 calls/s")
	p = play(t, monitor.Choice{Namespace: "team"})
	p.sees("1 function, 1 called", "6 instances: 4 busy, 2 starting", "13 calls/s")
	p.m.view.Over = 0
	p.sees("– calls/s", "1 function ")
	p.missing("called")
}
