package bench

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// measured makes rounds of a scenario: each has 1,000 calls in a second. Times are microseconds
// of a call.
func measured(s Scenario, path Path, cpu map[Part][]float64, p50 ...time.Duration) []Measurement {
	all := []Measurement{{Step: Step{Suite: "warm", Scenario: s, Path: path}, Calls: 1, Took: time.Hour}} // warms up
	for i, latency := range p50 {
		m := Measurement{
			Step: Step{Suite: "warm", Round: i + 1, Scenario: s, Path: path}, Calls: 1000, Took: time.Second, Costs: map[Part]Cost{}, Client: 7 * time.Millisecond,
			P50: latency * time.Microsecond, P99: 10 * latency * time.Microsecond,
		}
		for part, micros := range cpu {
			m.Costs[part] = Cost{CPU: time.Duration(micros[i] * 1e6), Switches: 3000, Exports: i == 0 && part == PartLocal, Mallocs: 250_000, Bytes: 9_000_000}
		}
		all = append(all, m)
	}
	return all
}

func example() []Measurement {
	s := Scenario{Deployment: Deployment{1, 8, 1}, Connections: 1, Answer: smallAnswer, Paths: []Path{Proxy, PooledProxy, Local, Separate}}
	all := measured(s, Proxy, map[Part][]float64{PartProxy: {50, 100, 60}, PartFunction: {20, 20, 20}}, 100, 200, 100)
	all = append(all, measured(s, PooledProxy, map[Part][]float64{PartProxy: {25, 50, 40}, PartFunction: {20, 20, 20}}, 100, 200, 100)...)
	all = append(all, measured(s, Local, map[Part][]float64{PartLocal: {100, 100, 60}, PartAgents: {100, 200, 180}, PartFunction: {30, 30, 30}}, 300, 500, 400)...)
	return append(all, measured(s, Separate, map[Part][]float64{
		PartGateway: {100, 200, 100}, PartScheduler: {50, 60, 40}, PartAgents: {100, 200, 100}, PartFunction: {30, 30, 30},
	}, 400, 600, 500)...)
}

func TestRatiosAreMadeRoundByRoundWithoutTheFunction(t *testing.T) {
	var got []string
	for _, figure := range Figures(example()) {
		got = append(got, figure.String())
	}
	want := []string{
		"pooled_proxy_cpu_over_proxy_8x1_c1=0.50 (0.50 to 0.67)",
		"warm_call_cpu_over_proxy_8x1_c1=4.00 (3.00 to 4.00)",
		"warm_call_tls_cpu_over_proxy_8x1_c1=4.60 (4.00 to 5.00)",
		"warm_call_cpu_over_pooled_proxy_8x1_c1=6.00 (6.00 to 8.00)",
		"warm_call_p50_over_proxy_8x1_c1=3.00 (2.50 to 4.00)",
		"warm_call_tls_cpu_over_pooled_proxy_8x1_c1=9.20 (6.00 to 10.0)",
		"warm_call_tls_p50_over_proxy_8x1_c1=4.00 (3.00 to 5.00)",
		"scheduler_cpu_us_per_warm_call_8x1_c1=50.0 (40.0 to 60.0)",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestSuitesKnowWhetherTheyHaveRatiosToStore(t *testing.T) {
	for _, suite := range Suites([]int{100}) {
		var all []Measurement
		for _, group := range suite.Groups {
			for _, s := range group {
				for _, path := range s.Paths {
					all = append(all, measured(s, path, map[Part][]float64{PartProxy: {50}}, 100)...)
				}
			}
		}
		if stored := Summarize(Provenance{}, all).Stored().Figures; len(stored) > 0 != suite.Stores() {
			t.Errorf("%s has %d figures to store, and says %t", suite.Name, len(stored), suite.Stores())
		}
	}
}

func TestThroughputIsComparedBetweenScenarios(t *testing.T) {
	at := func(path Path, d Deployment, connections int, calls ...int) []Measurement {
		s := Scenario{Deployment: d, Connections: connections, Answer: smallAnswer, Paths: []Path{path}}
		var all []Measurement
		for round, n := range calls {
			all = append(all, Measurement{Step: Step{Round: round, Scenario: s, Path: path}, Calls: n, Took: time.Second, Costs: map[Part]Cost{}})
		}
		return all
	}
	all := at(Local, Deployment{64, 1, 1}, 64, 1, 900, 950)
	all = append(all, at(Local, Deployment{1, 64, 1}, 64, 1, 1000, 1000)...)
	all = append(all, at(Local, Deployment{1, 8, 1}, 100, 1, 1000, 1000)...)
	all = append(all, at(Local, Deployment{1, 8, 1}, 1000, 1, 1010, 990)...)
	all = append(all, at(Balancer, Deployment{64, 1, 1}, 64, 1, 900, 900)...)
	all = append(all, at(Balancer, Deployment{1, 64, 1}, 64, 1, 1000, 1000)...)
	report := Report{Figures: Figures(all)}
	var got []string
	for _, figure := range report.Figures {
		got = append(got, figure.String()+" "+figure.Verdict())
		if !figure.Higher {
			t.Errorf("less is better of %s", figure.Name)
		}
	}
	want := []string{
		"throughput_64_functions_over_1=0.93 (0.90 to 0.95) goal >= 0.95  MISSED",
		"balancer_throughput_64_functions_over_1=0.90 (0.90 to 0.90) ",
		"throughput_1000_clients_over_100=1.00 (0.99 to 1.01) goal >= 0.95  met",
	}
	if stored := report.Stored(); len(stored.Figures) != 2 {
		t.Errorf("stored are %v, want what Windlass did", stored.Figures)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// The CPU time of many clients is compared part by part: Windlass, its functions, the clients.
func TestCPUTimeIsComparedBetweenNumbersOfClients(t *testing.T) {
	few := Scenario{Deployment: Deployment{1, 8, 1}, Connections: 100, Answer: smallAnswer, Paths: []Path{Direct, Local}}
	many := few
	many.Connections = 1000
	all := measured(few, Local, map[Part][]float64{PartLocal: {100}, PartAgents: {50}, PartFunction: {40}}, 1)
	all = append(all, measured(few, Direct, map[Part][]float64{PartFunction: {10}}, 1)...)
	all = append(all, measured(many, Local, map[Part][]float64{PartLocal: {115}, PartAgents: {50}, PartFunction: {44}}, 1)...)
	all = append(all, measured(many, Direct, map[Part][]float64{PartFunction: {12}}, 1)...)
	var got []string
	for _, figure := range Figures(all) {
		got = append(got, figure.String())
	}
	want := []string{
		"throughput_1000_clients_over_100=1.00 (1.00 to 1.00)",
		"direct_throughput_1000_clients_over_100=1.00 (1.00 to 1.00)",
		"warm_call_cpu_1000_clients_over_100=1.10 (1.10 to 1.10)",
		"function_cpu_1000_clients_over_100_direct=1.20 (1.20 to 1.20)",
		"client_cpu_1000_clients_over_100_direct=1.00 (1.00 to 1.00)",
		"function_cpu_1000_clients_over_100_warm_call=1.10 (1.10 to 1.10)",
		"client_cpu_1000_clients_over_100_warm_call=1.00 (1.00 to 1.00)",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestReportAsText(t *testing.T) {
	from := Provenance{
		Command: "windlass bench warm", Windlass: "v1", Go: "go1.26", Date: time.Date(2026, 11, 23, 20, 0, 0, 0, time.UTC),
		Machine: "CPU", Processors: 2, Kernel: "6.1", Load: 0.5, Rounds: 3, Span: "1s",
	}
	text := Summarize(from, example()).String()
	for _, want := range []string{
		"windlass bench warm\nWindlass v1, go1.26, 2026-11-23T20:00:00Z\nCPU, 2 processors, Linux 6.1, load average 0.5\n3 rounds of 1s\n",
		"\n8x1_c1: 8 instances of concurrency 1, 1 connection\n" + head + "\n",
		"\nproxy          60.0  1.00 (1.00 to 1.00)     20.0   7.00    1000     100    1000      -      -  6.00\n",
		"\nwindlass        280  4.00 (3.00 to 4.00)     30.0   7.00    1000     400    4000    250   9000  9.00\n",
		"\nwarm_call_p50_over_proxy_8x1_c1=3.00 (2.50 to 4.00)  goal <= 2.25  MISSED\n",
		"\nscheduler_cpu_us_per_warm_call_8x1_c1=50.0 (40.0 to 60.0)\n",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("%q is missing in\n%s", want, text)
		}
	}
	for line := range strings.Lines(text) {
		if len(line) > 101 {
			t.Errorf("%q has %d columns", line, len(line))
		}
	}
}

func TestFailedCallsAreNotOverlooked(t *testing.T) {
	all := example()
	if err := Summarize(Provenance{}, all).Failed(); err != nil {
		t.Error(err)
	}
	all[1].Failed, all[1].Failure = 3, "answered 503"
	all[2].Failed, all[2].Failure = 1, "timeout"
	report := Summarize(Provenance{}, all)
	if err := report.Failed(); err == nil || !strings.Contains(err.Error(), "4 calls failed") || !strings.Contains(report.String(), "4 FAILED") ||
		!strings.HasSuffix(err.Error(), "\n4 of 8x1_c1 on the path proxy, the first: answered 503") {
		t.Errorf("%v\n%s", err, report)
	}
}

func TestAnInstanceThatRunsTooManyCallsIsNotOverlooked(t *testing.T) {
	s := hangUps(Deployment{1, 2, 4}, 32)[0]
	all := measured(s, Local, map[Part][]float64{PartLocal: {1, 1}}, 1, 1)
	all[1].MostRunning, all[2].MostRunning, all[2].HungUp = 4, 3, 80
	report := Summarize(Provenance{}, all)
	if text := report.String(); report.Failed() != nil || !strings.Contains(text, "most_running_2x4_c32_hangup=3.50 (3.00 to 4.00)") {
		t.Errorf("%v\n%s", report.Failed(), text)
	}
	if stored := report.Stored(); len(stored.Figures) > 0 {
		t.Errorf("counts of calls are stored as ratios: %v", stored.Figures)
	}
	all[2].MostRunning = 5
	if err := Summarize(Provenance{}, all).Failed(); err == nil || !strings.Contains(err.Error(), "ran 5 calls at a time, and its concurrency is 4") {
		t.Error(err)
	}
}

// A call that is given up costs CPU time, too. Those that take long are given up, so what is left says nothing of latency.
func TestCallsThatAreGivenUpHaveTheirShareOfTheCost(t *testing.T) {
	all := measured(hangUps(Deployment{1, 8, 1}, 32)[0], Local, map[Part][]float64{PartLocal: {100}, PartFunction: {20}}, 300)
	all[1].HungUp = all[1].Calls
	report := Summarize(Provenance{}, all)
	if row, want := report.Results[0].row(), "windlass       50.0  -                       10.0   3.50    1000       -       -    125   4500  3.00"; row != want {
		t.Errorf("the row is\n%s\nwant\n%s", row, want)
	}
	var text bytes.Buffer
	if err := report.WriteJSON(&text); err != nil || strings.Contains(text.String(), "latencyMicros") {
		t.Errorf("%v\n%s", err, &text)
	}
}

func TestJSONComesBack(t *testing.T) {
	report := Summarize(Provenance{Command: "windlass bench warm", Date: time.Unix(1, 0).UTC()}, example())
	var text bytes.Buffer
	if err := report.WriteJSON(&text); err != nil {
		t.Fatal(err)
	}
	read, err := ReadJSON(&text)
	if err != nil {
		t.Fatal(err)
	}
	for i := range report.Results {
		report.Results[i].Load.Paths = nil // which are what is measured, and no property of a result
	}
	if diff := cmp.Diff(report, read); diff != "" {
		t.Error(diff)
	}
	if stored := report.Stored(); len(stored.Figures) != 6 || stored.Results != nil || stored.Provenance != report.Provenance {
		t.Errorf("stored is %+v, want what compares Windlass with proxies", stored)
	}
	if _, err := ReadJSON(strings.NewReader("fig3")); err == nil {
		t.Error("any text is a report")
	}
}

func TestCheckAllowsATolerance(t *testing.T) {
	figures := func(cpu, throughput float64) Report {
		return Report{Figures: []Figure{
			{Name: "cpu", Spread: Spread{cpu, cpu, cpu}}, {Name: "throughput", Spread: Spread{throughput, throughput, throughput}, Higher: true},
		}}
	}
	stored := figures(4, 1)
	for _, c := range []struct {
		cpu, throughput float64
		ok              bool
		says            string
	}{
		{4, 1, true, "cpu             4.00      4.00       0 %\n"},
		{5, 0.8, true, "cpu             4.00      5.00      25 %\n"},
		{5.01, 1, false, "cpu             4.00      5.01      25 %  WORSE than 25 % allow"},
		{4, 0.79, false, "throughput      1.00      0.79      27 %  WORSE"},
		{2, 1, true, "cpu             4.00      2.00     -50 %  better: store it again"},
	} {
		comparisons, err := Check(figures(c.cpu, c.throughput), stored)
		if err != nil {
			t.Fatal(err)
		}
		text, ok := CheckTable(comparisons, figures(c.cpu, c.throughput), stored)
		if ok != c.ok || !strings.Contains(text, c.says) {
			t.Errorf("cpu %v, throughput %v: %v\n%s", c.cpu, c.throughput, ok, text)
		}
	}
	if _, err := Check(Report{}, stored); err == nil || !strings.Contains(err.Error(), "cpu, throughput") {
		t.Errorf("nothing was measured, and that is: %v", err)
	}
}

// A check that compares nothing, or less than was measured, must not look like one that passed.
func TestACheckSaysWhatItDidNotCompare(t *testing.T) {
	report := Summarize(Provenance{}, example())
	if _, err := Check(report, Report{}); err == nil {
		t.Error("nothing is stored, and the check passes")
	}
	if _, err := ReadJSON(strings.NewReader(`{"figs": []}`)); err == nil {
		t.Error("a report without figures can be compared with")
	}
	stored := report.Stored()
	missing := stored.Figures[0].Name
	stored.Figures = stored.Figures[1:]
	comparisons, err := Check(report, stored)
	if err != nil {
		t.Fatal(err)
	}
	if text, ok := CheckTable(comparisons, report, stored); !ok || strings.Count(text, "not stored: ") != 1 || !strings.HasSuffix(text, "not stored: "+missing+"\n") {
		t.Errorf("without %s stored it says\n%s", missing, text)
	}
}

func TestACheckNamesAnotherMachine(t *testing.T) {
	report := Summarize(Provenance{Machine: "CPU", Processors: 2, Windlass: "v2"}, example())
	for _, c := range []struct {
		stored    Provenance
		elsewhere bool
	}{
		{Provenance{Machine: "CPU", Processors: 2, Windlass: "v1"}, false},
		{Provenance{Machine: "CPU", Processors: 4}, true},
		{Provenance{Machine: "other", Processors: 2}, true},
	} {
		stored := report.Stored()
		stored.Provenance = c.stored
		comparisons, err := Check(report, stored)
		if err != nil {
			t.Fatal(err)
		}
		if text, _ := CheckTable(comparisons, report, stored); strings.Contains(text, "another machine, CPU, 2 processors: the likely reason") != c.elsewhere {
			t.Errorf("stored on %+v it says\n%s", c.stored, text)
		}
	}
}

func TestWhatIsDoubtfulIsNotStoredWithoutAWord(t *testing.T) {
	for _, c := range []struct {
		from Provenance
		want []string
	}{
		{Provenance{Windlass: "v1-3-g0123abc", Processors: 2, Load: 2}, nil},
		{Provenance{Windlass: "v1", Processors: 2, Load: 2.1}, []string{"load average is 2.1"}},
		{Provenance{Windlass: "v1-dirty", Processors: 2, Load: 9}, []string{"load average is 9.0", "changes that no commit has"}},
	} {
		doubts := c.from.Doubts()
		if len(doubts) != len(c.want) {
			t.Errorf("%+v: %q, want %q", c.from, doubts, c.want)
			continue
		}
		for i, want := range c.want {
			if !strings.Contains(doubts[i], want) {
				t.Errorf("%+v: %q, want %q", c.from, doubts[i], want)
			}
		}
	}
}

func TestChartsHaveRatiosAndLatencies(t *testing.T) {
	all := example()
	s := Scenario{Deployment: Deployment{1, 8, 1}, Connections: 256, Rate: 100, Answer: smallAnswer, Paths: []Path{Local}}
	open := measured(s, Local, map[Part][]float64{PartLocal: {100}}, 100)
	charts := Summarize(Provenance{}, append(all, open...)).Charts
	if len(charts) != 2 || charts[0].Name != "bench-warm-cpu" || charts[1].Name != "bench-warm-latency" {
		t.Fatalf("the charts are %+v", charts)
	}
	var names []string
	for _, series := range charts[0].Series {
		names = append(names, series.Name)
	}
	if diff := cmp.Diff([]string{"pooled-proxy", "windlass", "windlass-tls", "one proxy"}, names); diff != "" {
		t.Error(diff)
	}
	if p := charts[0].Series[1].Points[0]; p.Y != 4 || p.Err != 0.5 {
		t.Errorf("the ratio is drawn as %+v", p)
	}
	if len(charts[1].Series) != 2 || charts[1].Series[1].Points[0].Y != 1000 {
		t.Errorf("the latencies are drawn as %+v", charts[1].Series)
	}
}
