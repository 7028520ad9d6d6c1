package monitor

import (
	"math"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	dto "github.com/prometheus/client_model/go"

	"github.com/windlass-dev/windlass/pkg/autoscaler/decisionlog"
	"github.com/windlass-dev/windlass/pkg/invocation"
)

var noon = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// fakeReading is the metrics of one process, under construction.
type fakeReading struct{ families map[string]*dto.MetricFamily }

func process() *fakeReading { return &fakeReading{map[string]*dto.MetricFamily{}} }

// says adds a series: a counter or gauge, which are read alike.
func (t *fakeReading) says(name string, value float64, labels ...string) *fakeReading {
	return t.add(name, &dto.Metric{Untyped: &dto.Untyped{Value: &value}}, labels...)
}

func (t *fakeReading) add(name string, m *dto.Metric, labels ...string) *fakeReading {
	for i := 0; i < len(labels); i += 2 {
		m.Label = append(m.Label, &dto.LabelPair{Name: &labels[i], Value: &labels[i+1]})
	}
	if t.families[name] == nil {
		t.families[name] = &dto.MetricFamily{Name: &name}
	}
	t.families[name].Metric = append(t.families[name].Metric, m)
	return t
}

func (t *fakeReading) ofNode(source, node string) Reading {
	r := t.reading(source)
	r.Node = node
	return r
}

func (t *fakeReading) reading(source string) Reading {
	r := Reading{Source: source}
	for _, family := range t.families {
		r.Families = append(r.Families, family)
	}
	return r
}

var hello = []string{"function_namespace", "default", "function", "hello"}

func with(labels []string, more ...string) []string {
	return append(labels[:len(labels):len(labels)], more...)
}

// gateway has answered so many calls of hello, and failed so many of them.
func gateway(calls, failed float64) *fakeReading {
	return process().
		says("windlass_gateway_invocations_total", calls-failed, with(hello, "code", "200", "executed", "yes")...).
		says("windlass_gateway_invocations_total", failed, with(hello, "code", "503", "executed", "no")...)
}

func at(second int, readings ...Reading) Sample {
	return Read(noon.Add(time.Duration(second)*time.Second), readings)
}

func helloOf(t *testing.T, v View) Function {
	t.Helper()
	for _, f := range v.Functions {
		if f.Name == "hello" {
			return f
		}
	}
	t.Fatalf("hello is not in the view: %+v", v)
	return Function{}
}

func TestRatesAreOverTheLastTenSeconds(t *testing.T) {
	var w Watcher
	first := w.See(at(0, gateway(100, 50).reading("g")))
	if f := helloOf(t, first); f.Rate != 0 || len(f.Recent) != 0 || first.Over != 0 {
		t.Errorf("before anything could change: %+v", f)
	}
	calls := 100.0
	for second, more := range []float64{20, 0, 0, 0, 0, 0, 0, 0, 0, 0, 10} {
		calls += more
		v := w.See(at(second+1, gateway(calls, 50).reading("g")))
		f := helloOf(t, v)
		want := map[int]float64{0: 20, 1: 10, 9: 2, 10: 1}
		if rate, checked := want[second]; checked && f.Rate != rate {
			t.Errorf("after %d s the rate is %g, want %g", second+1, f.Rate, rate)
		}
		if f.Rate != v.Totals.Rate {
			t.Errorf("the only function has a rate of %g, all have %g", f.Rate, v.Totals.Rate)
		}
		if len(f.Recent) != second+1 || f.Recent[second] != more {
			t.Errorf("after %d s the last minute is %v", second+1, f.Recent)
		}
	}
}

// An answer that breaks off has the status of its head.
func TestAnswersThatBreakOffAreErrors(t *testing.T) {
	cut := func(n float64) *fakeReading {
		return gateway(n, 0).says("windlass_gateway_answers_broken_total", n/2, with(hello, "reason", "InstanceLost")...)
	}
	var w Watcher
	w.See(at(0, cut(0).reading("g")))
	if f := helloOf(t, w.See(at(1, cut(6).reading("g")))); f.Rate != 6 || f.Errors != 3 {
		t.Errorf("rate %g, errors %g", f.Rate, f.Errors)
	}
}

func TestALongIntervalIsTakenAlone(t *testing.T) {
	var w Watcher
	w.See(at(0, gateway(0, 0).reading("g")))
	v := w.See(at(30, gateway(60, 30).reading("g")))
	if f := helloOf(t, v); f.Rate != 2 || f.Errors != 1 || v.Over != 30 {
		t.Errorf("rate %g, errors %g over %g s", f.Rate, f.Errors, v.Over)
	}
}

func TestOnlyNewsCount(t *testing.T) {
	for name, tc := range map[string]struct {
		before, after []Reading
		rate          float64
	}{
		"of two gateways":         {[]Reading{gateway(5, 0).reading("a"), gateway(50, 0).reading("b")}, []Reading{gateway(6, 0).reading("a"), gateway(53, 0).reading("b")}, 4},
		"a gateway that is new":   {[]Reading{gateway(5, 0).reading("a")}, []Reading{gateway(6, 0).reading("a"), gateway(53, 0).reading("b")}, 1},
		"a gateway that is gone":  {[]Reading{gateway(5, 0).reading("a"), gateway(50, 0).reading("b")}, []Reading{gateway(6, 0).reading("a")}, 1},
		"one that started again":  {[]Reading{gateway(500, 0).reading("a")}, []Reading{gateway(7, 0).reading("a")}, 7},
		"a function that is new":  {[]Reading{process().reading("a")}, []Reading{gateway(3, 0).reading("a")}, 3},
		"a scheduler counts none": {[]Reading{gateway(1, 0).reading("a"), process().reading("s")}, []Reading{gateway(2, 0).reading("a"), process().says("windlass_scheduler_queue_length", 3, hello...).reading("s")}, 1},
	} {
		t.Run(name, func(t *testing.T) {
			var w Watcher
			w.See(at(0, tc.before...))
			if f := helloOf(t, w.See(at(1, tc.after...))); f.Rate != tc.rate {
				t.Errorf("the rate is %g, want %g", f.Rate, tc.rate)
			}
		})
	}
}

// A gateway drops the series of a revision that is gone. It has not restarted.
func TestARevisionThatIsGoneTakesNoCallsWithIt(t *testing.T) {
	gateway := func(calls map[string]float64) *fakeReading {
		p := process()
		for revision, n := range calls {
			p.says("windlass_gateway_invocations_total", n, with(hello, "revision", revision, "code", "200", "executed", "yes")...)
			p.says("windlass_gateway_invocations_total", n/10, with(hello, "revision", revision, "code", "502", "executed", "maybe")...)
		}
		return p.says("windlass_gateway_cold_invocations_total", 7, hello...)
	}
	var w Watcher
	w.See(at(0, gateway(map[string]float64{"00001": 1000, "00002": 500}).reading("g")))
	if f := helloOf(t, w.See(at(1, gateway(map[string]float64{"00002": 510}).reading("g")))); f.Rate != 11 || f.Errors != 1 || f.Cold != 0 {
		t.Errorf("rate %g, errors %g, cold %g; want 11, 1 and 0", f.Rate, f.Errors, f.Cold)
	}
}

func TestAProcessThatDoesNotTellIsAsItWas(t *testing.T) {
	var w Watcher
	scheduler := process().says("windlass_scheduler_queue_length", 3, hello...).reading("s")
	w.See(at(0, gateway(5, 0).reading("g"), scheduler))
	v := w.See(at(1, Reading{Source: "g", Failed: "g does not\x1b[2J tell"}, scheduler))
	if f := helloOf(t, v); f.Rate != 0 || f.Queued != 3 {
		t.Errorf("while the gateway is silent: %+v", f)
	}
	if diff := cmp.Diff([]string{"g does not?[2J tell"}, v.Troubles); diff != "" {
		t.Error(diff)
	}
	v = w.See(at(2, gateway(11, 0).reading("g"), scheduler))
	if f := helloOf(t, v); f.Rate != 3 {
		t.Errorf("of 6 calls in 2 seconds the rate is %g", f.Rate)
	}
	if v = w.See(at(3, scheduler)); helloOf(t, v).InFlight != 0 || len(v.Troubles) != 0 {
		t.Errorf("when the gateway is gone for good: %+v", v)
	}
}

// What is left out, and another process that does not answer, keep none alive that is gone.
func TestAProcessThatIsGoneIsNotKeptByTheTroublesOfOthers(t *testing.T) {
	busy := gateway(5, 0).says("windlass_gateway_invocations_in_flight", 7, hello...)
	for name, after := range map[string]Sample{
		"another one fails":  at(1, gateway(1, 0).reading("a"), Reading{Source: "b", Failed: "b does not answer"}),
		"nodes are left out": Read(noon.Add(time.Second), []Reading{gateway(1, 0).reading("a")}, "2 of 66 node agents are not asked"),
	} {
		var w Watcher
		w.See(at(0, gateway(1, 0).reading("a"), busy.reading("g")))
		if v := w.See(after); helloOf(t, v).InFlight != 0 || len(v.Troubles) != 1 {
			t.Errorf("%s: %+v", name, v)
		}
	}
}

func TestAProcessThatFailsForLongIsNotShownAnyMore(t *testing.T) {
	var w Watcher
	w.See(at(0, gateway(1, 0).reading("a"), gateway(5, 0).says("windlass_gateway_invocations_in_flight", 7, hello...).reading("g")))
	for second := 1; second <= 31; second++ {
		v := w.See(at(second, gateway(1, 0).reading("a"), Reading{Source: "g", Failed: "g does not answer"}))
		want := 7
		if second > 30 {
			want = 0
		}
		if got := helloOf(t, v).InFlight; got != want {
			t.Fatalf("after %d s %d calls run, want %d", second, got, want)
		}
	}
}

func TestStatesOfSeveralSchedulersAddUp(t *testing.T) {
	six, seven := with(hello, "revision", "00006"), with(hello, "revision", "00007")
	one := process().
		says("windlass_scheduler_queue_length", 3, seven...).
		says("windlass_scheduler_queue_oldest_wait_seconds", 0.5, seven...).
		says("windlass_scheduler_instances", 2, with(seven, "state", "creating")...).
		says("windlass_scheduler_instances", 4, with(seven, "state", "busy")...).
		says("windlass_scheduler_desired_instances", 6, seven...).
		says("windlass_scheduler_node_instances", 4, "node_name", "n1").
		says("windlass_scheduler_node_requested_ratio", 0.25, "node_name", "n1", "resource", "cpu")
	other := process().
		says("windlass_scheduler_queue_length", 1, six...).
		says("windlass_scheduler_queue_oldest_wait_seconds", 1.5, six...).
		says("windlass_scheduler_instances", 1, with(six, "state", "idle")...).
		says("windlass_scheduler_instances", 1, with(six, "state", "leaving")...).
		// It has taken 00007 over, and the other has not noticed.
		says("windlass_scheduler_queue_length", 2, seven...).
		says("windlass_scheduler_instances", 3, with(seven, "state", "busy")...).
		says("windlass_scheduler_desired_instances", 5, seven...).
		says("windlass_scheduler_node_instances", 1, "node_name", "n1").
		says("windlass_scheduler_node_instances", 9, "node_name", "n0").
		says("windlass_scheduler_node_requested_ratio", 0.3, "node_name", "n1", "resource", "cpu")
	var w Watcher
	v := w.See(at(0, one.reading("a"), other.reading("b"), gateway(0, 0).says("windlass_gateway_invocations_in_flight", 7, hello...).reading("g")))
	want := Load{Queued: 4, OldestWait: 1.5, InFlight: 7, Instances: Instances{Creating: 2, Busy: 4, Idle: 1, Leaving: 1}, Recent: []float64{}}
	f := helloOf(t, v)
	if diff := cmp.Diff(want, f.Load); diff != "" || f.Instances.All() != 8 {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(Totals{Functions: 1, Load: want}, v.Totals); diff != "" {
		t.Errorf("totals (-want +got):\n%s", diff)
	}
	if f.Plan.Required != 6 {
		t.Errorf("the plan is %+v", f.Plan)
	}
	revisions := []Revision{
		{Revision: "00006", Queued: 1, Instances: Instances{Idle: 1, Leaving: 1}},
		{Revision: "00007", Queued: 3, Instances: Instances{Creating: 2, Busy: 4}},
	}
	if diff := cmp.Diff(revisions, f.Revisions); diff != "" {
		t.Errorf("revisions (-want +got):\n%s", diff)
	}
	nodes := []Node{{Name: "n0", Instances: 9}, {Name: "n1", Instances: 5, Requested: map[string]float64{"cpu": 0.3}}}
	if diff := cmp.Diff(nodes, v.Nodes); diff != "" {
		t.Errorf("nodes (-want +got):\n%s", diff)
	}
}

func TestPhasesAreWhatACallTook(t *testing.T) {
	sums := func(calls, queue, execute float64) Reading {
		return gateway(calls, 0).
			says("windlass_gateway_phase_seconds_total", queue, with(hello, "phase", "queue")...).
			says("windlass_gateway_phase_seconds_total", execute, with(hello, "phase", "execute")...).
			says("windlass_scheduler_instances_started_total", 4, hello...).
			says("windlass_scheduler_cold_start_phase_seconds_total", 2, with(hello, "phase", "containers")...).
			reading("g")
	}
	var w Watcher
	w.See(at(0, sums(10, 100, 100)))
	f := helloOf(t, w.See(at(1, sums(14, 101, 103))))
	want := []Phase{{Name: "admit"}, {Name: "queue", Mean: 0.25, Share: 0.25}, {Name: "claim"}, {Name: "execute", Mean: 0.75, Share: 0.75}, {Name: "return"}}
	if diff := cmp.Diff(want, f.Phases, cmpopts.EquateApprox(0, 1e-9)); diff != "" {
		t.Errorf("phases (-want +got):\n%s", diff)
	}
	if len(f.ColdPhases) != len(coldPhases) || f.ColdPhases[3] != (Phase{Name: "containers", Mean: 0.5, Share: 1}) {
		t.Errorf("phases of cold starts: %+v", f.ColdPhases)
	}
	if f = helloOf(t, w.See(at(20, sums(14, 101, 103)))); f.Phases != nil {
		t.Errorf("long after the last call there are phases %+v", f.Phases)
	}
}

func TestTheWaitForACoreIsAPhaseWhereCallsWaited(t *testing.T) {
	sums := func(calls, core, execute float64) Reading {
		return gateway(calls, 0).
			says("windlass_gateway_phase_seconds_total", core, with(hello, "phase", "core")...).
			says("windlass_gateway_phase_seconds_total", execute, with(hello, "phase", "execute")...).
			reading("g")
	}
	var w Watcher
	w.See(at(0, sums(10, 5, 100)))
	f := helloOf(t, w.See(at(1, sums(14, 6, 103))))
	want := []Phase{{Name: "admit"}, {Name: "queue"}, {Name: "core", Mean: 0.25, Share: 0.25}, {Name: "claim"}, {Name: "execute", Mean: 0.75, Share: 0.75}, {Name: "return"}}
	if diff := cmp.Diff(want, f.Phases, cmpopts.EquateApprox(0, 1e-9)); diff != "" {
		t.Errorf("phases (-want +got):\n%s", diff)
	}
	// Of the last ten seconds, none waited.
	f = helloOf(t, w.See(at(20, sums(18, 6, 106))))
	want = []Phase{{Name: "admit"}, {Name: "queue"}, {Name: "claim"}, {Name: "execute", Mean: 0.75, Share: 1}, {Name: "return"}}
	if diff := cmp.Diff(want, f.Phases, cmpopts.EquateApprox(0, 1e-9)); diff != "" {
		t.Errorf("phases once no call waits (-want +got):\n%s", diff)
	}
}

func TestTheDecisionOfTheLastMinuteIsShown(t *testing.T) {
	account := func(name, what string, second, launched int) decisionlog.Report {
		at := noon.Add(time.Duration(second) * time.Second)
		return decisionlog.Report{Namespace: "default", Name: name, Decisions: []decisionlog.ReportEntry{
			{Summary: "older"}, {Summary: what, Why: "First: a\tnode\x07", At: at, Until: at, Times: 1, Launched: launched}}}
	}
	scheduler := func(latest ...decisionlog.Report) Reading {
		return Reading{Source: "s", Latest: decisionlog.LatestReport{Functions: latest}}
	}
	silent := Reading{Source: "s", Failed: "s does not answer"}
	var w Watcher
	for second, tc := range []struct {
		reading Reading
		want    string
	}{
		{scheduler(account("hello", "launched 1", 0, 1), account("gone", "launched 9", 0, 9)), "launched 1"},
		{silent, "launched 1"},
		{scheduler(account("hello", "launched 2", 2, 2), account("hello", "launched 3", 1, 3)), "launched 2"},
		// Of two revisions one has a change, the other decides all the time.
		{scheduler(account("hello", "launched 2", 2, 2), account("hello", "no change", 3, 0)), "launched 2"},
		{scheduler(account("hello", "no change", 4, 0), account("hello", "no room", 3, 0)), "no change"},
		{scheduler(), ""},
	} {
		got := ""
		if last := helloOf(t, w.See(at(second, gateway(1, 0).reading("g"), tc.reading))).Last; last != nil {
			got = last.What
			if last.Why != "First: a node?" {
				t.Errorf("the reason is %q", last.Why)
			}
		}
		if got != tc.want {
			t.Errorf("after %d s the last decision is %q, want %q", second, got, tc.want)
		}
	}
}

func TestDecisionsThatAreLeftOutAreATrouble(t *testing.T) {
	v := (&Watcher{}).See(at(0, Reading{Source: "s", Latest: decisionlog.LatestReport{More: 7}}))
	if diff := cmp.Diff([]string{"the last decisions on 7 more functions are left out"}, v.Troubles); diff != "" {
		t.Error(diff)
	}
}

func TestA10AFunctionThatCannotRunSaysWhy(t *testing.T) {
	var w Watcher
	broken := process().says("windlass_scheduler_queue_length", 0, hello...).reading("s")
	broken.Latest.Broken = []decisionlog.Broken{{Namespace: "default", Name: "hello", Reason: "StartFailed\x07"}}
	v := w.See(at(0, gateway(1, 0).reading("g"), broken))
	if f := helloOf(t, v); f.Broken != "StartFailed?" || v.Totals.Broken != 1 {
		t.Errorf("%+v, %+v", f, v.Totals)
	}
	broken.Latest.Broken = nil
	v = w.See(at(1, gateway(1, 0).reading("g"), broken))
	if f := helloOf(t, v); f.Broken != "" || v.Totals.Broken != 0 {
		t.Errorf("after it was mended: %+v, %+v", f, v.Totals)
	}
}

func TestAFunctionRunsAsLongAsOneOfItsRevisionsDoes(t *testing.T) {
	var w Watcher
	told := process().
		says("windlass_scheduler_instances", 2, with(hello, "revision", "00006", "state", "idle")...).
		says("windlass_scheduler_instances", 0, with(hello, "revision", "00007", "state", "idle")...).reading("s")
	told.Latest.Broken = []decisionlog.Broken{{Namespace: "default", Name: "hello", Revision: "00007", Reason: "StartFailed"}}
	v := w.See(at(0, told))
	f := helloOf(t, v)
	if f.Broken != "" || v.Totals.Broken != 0 || f.Revisions[1].Broken != "StartFailed" || f.Revisions[1].Words() != "00007:StartFailed" {
		t.Errorf("%+v, %+v", f, v.Totals)
	}
	told.Latest.Broken = append(told.Latest.Broken, decisionlog.Broken{Namespace: "default", Name: "hello", Revision: "00006", Reason: "ImagePullFailed"})
	if f := helloOf(t, w.See(at(1, told))); f.Broken == "" {
		t.Errorf("none of the revisions can run: %+v", f)
	}
}

func TestNoMoreThanAMinuteIsRemembered(t *testing.T) {
	var w Watcher
	for second := range 200 {
		w.See(at(second, gateway(float64(min(second, 100)), 0).reading("g")))
		if got := len(w.lengths); got > memory {
			t.Fatalf("%d intervals are remembered", got)
		}
	}
	if len(w.functions) != 0 {
		t.Error("a function that was not called for long is remembered")
	}
	f := helloOf(t, w.See(at(200, gateway(105, 0).reading("g"))))
	if len(f.Recent) != memory || f.Recent[memory-1] != 5 || f.Recent[memory-2] != 0 {
		t.Errorf("recently: %v", f.Recent)
	}
	v := w.See(at(201, process().reading("g")))
	if len(v.Functions) != 0 || len(w.functions) != 0 || math.Abs(v.Totals.Rate-0.5) > 1e-9 {
		t.Errorf("when the function is gone: %+v", v)
	}
}

func TestChoosing(t *testing.T) {
	named := func(namespace, name string, change func(*Function)) Function {
		f := Function{Namespace: namespace, Name: name}
		if change != nil {
			change(&f)
		}
		return f
	}
	all := []Function{
		named("team", "a", func(f *Function) { f.Rate, f.P99 = 5, 0.1 }),
		named("default", "b", func(f *Function) { f.Queued, f.OldestWait = 3, 1 }),
		named("default", "web", func(f *Function) { f.Queued, f.OldestWait, f.Errors = 3, 2, 1 }),
		named("team", "c", func(f *Function) { f.Instances.Busy, f.Rate = 4, 7 }),
	}
	names := func(functions []Function) (s string) {
		for _, f := range functions {
			s += f.Name + " "
		}
		return s
	}
	for by, want := range map[Order]string{
		ByQueue: "web b c a ", ByRate: "c a b web ", ByErrors: "web b a c ", ByP99: "a b web c ", ByInstances: "c b web a ", ByName: "b web a c ",
	} {
		Sort(all, by, false)
		if got := names(all); got != want {
			t.Errorf("by %s: %s, want %s", by, got, want)
		}
	}
	Sort(all, ByName, true)
	if got := names(all); got != "c a web b " {
		t.Errorf("backwards: %s", got)
	}
	for want, c := range map[string]Choice{"c a web b ": {}, "web ": {Text: "T/WE"}, "c a ": {Namespace: "team"}, "": {Namespace: "team", Text: "b"}} {
		if got := names(Choose(all, c)); got != want {
			t.Errorf("of %+v: %s, want %s", c, got, want)
		}
	}
	if (&all[0]).Key() != (invocation.FunctionKey{Namespace: "team", Name: "c"}) {
		t.Error("a function has the key of another one")
	}
}

func TestANodeAgentTellsOfItsNodeAlone(t *testing.T) {
	agent := func(busy float64) *fakeReading {
		return process().says("windlass_node_busy", busy).says("windlass_node_cores", 4).says("windlass_node_low_instances", 5).
			says("windlass_node_calls", 3, "state", "waiting").says("windlass_node_calls", 2, "state", "holding").says("windlass_node_calls", 9, "state", "demoted")
	}
	nodes := process().says("windlass_scheduler_node_instances", 4, "node_name", "n1").says("windlass_scheduler_node_instances", 2, "node_name", "n3")
	var w Watcher
	v := w.See(at(0, nodes.reading("s-1"), nodes.reading("s-2"), agent(1).ofNode("a-1", "n1"), agent(0).ofNode("a-2", "n2"), agent(1).reading("of no node")))
	order := func(busy bool) *NodeOrder { return &NodeOrder{Busy: busy, Cores: 4, Holding: 2, Waiting: 3, Low: 5} }
	want := []Node{{Name: "n1", Instances: 8, Order: order(true)}, {Name: "n2", Order: order(false)}, {Name: "n3", Instances: 4}}
	if diff := cmp.Diff(want, v.Nodes); diff != "" {
		t.Errorf("nodes (-want +got):\n%s", diff)
	}
}

func TestBatchWorkOfANodeIsInCores(t *testing.T) {
	type used map[string]float64 // by function; "" is a pod that is filler
	agent := func(u used) Reading {
		p := process().says("windlass_node_busy", 0).says("windlass_node_colocation", 1).says("windlass_node_frozen_instances", 2).says("windlass_node_reserved_cores", 3)
		for function, seconds := range u {
			p.says("windlass_node_batch_cpu_seconds_total", seconds, "function_namespace", "ns", "function", function)
		}
		return p.ofNode("a-1", "n1")
	}
	var w Watcher
	for second, tt := range []struct {
		used  used
		cores float64 // -1: there is no batch work
	}{
		{used{"f": 100}, 0},              // of any time
		{used{"f": 101}, 1},              // 1 in 1 s
		{used{"f": 101.5, "": 2}, 1.75},  // 1 and 2.5 in 2 s
		{used{"f": 0.5, "": 2}, 4.0 / 3}, // another node agent counts
		{nil, -1},
		{used{"": 1}, 1}, // 1 + 2.5 + 0.5 + 0 + 1 in 5 s
	} {
		v := w.See(at(second, agent(tt.used)))
		want := []Node{{Name: "n1", Order: &NodeOrder{Batch: &NodeBatch{Cores: tt.cores, CoLocated: true, Frozen: 2, Reserved: 3}}}}
		if tt.cores < 0 {
			want[0].Order.Batch = nil
		}
		if diff := cmp.Diff(want, v.Nodes, cmpopts.EquateApprox(1e-9, 0)); diff != "" {
			t.Errorf("after %d s (-want +got):\n%s", second, diff)
		}
	}
	for second := range 100 {
		w.See(at(second+10, agent(nil)))
	}
	if len(w.batch) > 0 {
		t.Errorf("it remembers %v of nodes that had no batch work for long", w.batch)
	}
}
