package replay

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
)

// good is the sample of a call whose setup took the given time and whose
// function worked for 10 ms.
func good(function string, setup time.Duration) Sample {
	return Sample{Function: function, Status: 200, Executed: "yes", Own: 10 * ms, OwnKnown: true, Total: setup + 10*ms}
}

func cold(s Sample) Sample {
	s.Cold = true
	return s
}

// mixed are 100 good calls of a, with setup times of 1 to 100 ms of which the
// last is cold, and one call of b for every way to fail.
func mixed() []Sample {
	var samples []Sample
	for i := range 99 {
		samples = append(samples, good("ns/a", time.Duration(99-i)*ms))
	}
	samples = append(samples, cold(good("ns/a", 100*ms)))
	unmeasured := good("ns/b", 0)
	unmeasured.Own, unmeasured.OwnKnown = 0, false
	return append(samples,
		unmeasured,
		Sample{Function: "ns/b", Outcome: NotSent, Failure: "not sent: 1 calls were under way", Late: 3 * ms},
		Sample{Function: "ns/b", Outcome: NoAnswer, Failure: "no answer: timed out"},
		Sample{Function: "ns/b", Status: 502, Failure: "status 502 without"},
		Sample{Function: "ns/b", Status: 503, Executed: "no", Failure: "status 503, executed: no"},
		Sample{Function: "ns/b", Status: 503, Executed: "no", Failure: "status 503, executed: no"},
		Sample{Function: "ns/b", Outcome: CutOff},
	)
}

func TestSummarizeCountsEveryKindOfCallOnce(t *testing.T) {
	r := Summarize(mixed(), map[string]Instances{"ns/a": {Created: 5, Peak: 3}, "ns/b": {Created: 1, Peak: 1}})
	setup := Quantiles{N: 100, P50: 50 * ms, P95: 95 * ms, P99: 99 * ms}
	total := Quantiles{N: 100, P50: 60 * ms, P95: 105 * ms, P99: 109 * ms}
	want := Report{
		Functions: []Row{
			{Function: "ns/a", Calls: 100, ColdStarts: 1, Setup: setup, Total: total, Instances: &Instances{5, 3}},
			{Function: "ns/b", Calls: 6, Errors: 5, Lost: 2, NotSent: 1, CutOff: 1, Unmeasured: 1,
				Total: Quantiles{1, 10 * ms, 10 * ms, 10 * ms}, Instances: &Instances{1, 1}},
		},
		Total: Row{Function: "*", Calls: 106, Errors: 5, Lost: 2, NotSent: 1, CutOff: 1, ColdStarts: 1, Unmeasured: 1,
			Setup: setup, Total: Quantiles{101, 60 * ms, 105 * ms, 109 * ms}, Instances: &Instances{6, 4}},
		Failures: []Failure{
			{"status 503, executed: no", 2}, {"no answer: timed out", 1}, {"not sent: 1 calls were under way", 1}, {"status 502 without", 1},
		},
		SendLateP99: 0, SendLateMax: 3 * ms,
	}
	if diff := cmp.Diff(want, r); diff != "" {
		t.Error(diff)
	}
}

func TestTheTotalOfInstancesMayBeTold(t *testing.T) {
	r := Summarize(mixed(), map[string]Instances{"ns/a": {5, 3}, "ns/b": {1, 1}, AllFunctions: {6, 3}})
	if diff := cmp.Diff(&Instances{6, 3}, r.Total.Instances); diff != "" {
		t.Error(diff)
	}
	if r := Summarize(mixed(), nil); r.Total.Instances != nil || r.Functions[0].Instances != nil {
		t.Error("instances are told though nothing is known of them")
	}
}

func TestValuesAreForPrograms(t *testing.T) {
	got := Summarize(mixed(), map[string]Instances{"ns/a": {5, 3}}).Values()
	want := []string{
		"calls=106", "errors=5", "lost=2", "not_sent=1", "cut_off=1", "cold_starts=1", "cold_start_ratio=0.0094",
		"instances_created=5", "instances_peak=3",
		"setup_p50_ms=50.000", "setup_p95_ms=95.000", "setup_p99_ms=99.000",
		"total_p50_ms=60.000", "total_p95_ms=105.000", "total_p99_ms=109.000",
		"unmeasured=1", "send_late_p99_ms=0.000", "send_late_max_ms=3.000",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	want = []string{
		"calls=0", "errors=0", "lost=0", "not_sent=0", "cut_off=0", "cold_starts=0", "cold_start_ratio=0.0000",
		"unmeasured=0", "send_late_p99_ms=0.000", "send_late_max_ms=0.000",
	}
	if diff := cmp.Diff(want, Summarize(nil, nil).Values()); diff != "" {
		t.Errorf("of no calls: %s", diff)
	}
}

func TestTheTableIsAligned(t *testing.T) {
	want := `
                                 instances       setup time, ms        total time, ms
function  calls errors  cold created  peak    p50    p95    p99     p50    p95    p99
ns/a        100      0     1       5     3   50.0   95.0   99.0    60.0  105.0  109.0
ns/b          6      5     0       -     -      -      -      -    10.0   10.0   10.0
total       106      5     1       5     3   50.0   95.0   99.0    60.0  105.0  109.0
errors: 2 x status 503, executed: no
errors: 1 x no answer: timed out
errors: 1 x not sent: 1 calls were under way
errors: 1 x status 502 without
`
	got := "\n" + Summarize(mixed(), map[string]Instances{"ns/a": {5, 3}}).Table()
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestTheTableFitsIntoAHundredColumns(t *testing.T) {
	name := strings.Repeat("n", 63) + "/" + strings.Repeat("é", 62)
	var samples []Sample
	for i := range 7 {
		s := good(name+fmt.Sprint(i), time.Hour)
		failed := s
		failed.Failure = fmt.Sprintf("reason %d", i)
		samples = append(samples, s, failed)
	}
	table := Summarize(samples, map[string]Instances{name + "0": {99999, 99999}}).Table()
	for line := range strings.Lines(table) {
		if n := utf8.RuneCountInString(strings.TrimSuffix(line, "\n")); n > 100 {
			t.Errorf("%d columns: %s", n, line)
		}
	}
	for _, want := range []string{"é6 ", "3600000", "errors: and 2 other reasons"} {
		if !strings.Contains(table, want) {
			t.Errorf("no %q in\n%s", want, table)
		}
	}
}

func TestVerdictNamesEachBoundThatWasBroken(t *testing.T) {
	coldOf := func(n, of int) []Sample {
		var samples []Sample
		for i := range of {
			s := good("f", ms)
			s.Cold = i < n
			samples = append(samples, s)
		}
		return samples
	}
	for name, tt := range map[string]struct {
		samples []Sample
		bounds  Bounds
		want    []string
	}{
		"sound":                     {coldOf(4, 100), Bounds{}, nil},
		"as cold as may not be":     {coldOf(5, 100), Bounds{}, []string{"5 of 100 calls were cold starts (5.0 %); they must stay below 5.0 %"}},
		"another bound":             {coldOf(5, 100), Bounds{ColdStartRatio: .06}, nil},
		"nothing happened":          {nil, Bounds{}, []string{"no call was made"}},
		"stopped":                   {append(coldOf(0, 2), Sample{Outcome: CutOff}), Bounds{}, []string{"the replay was stopped with 1 calls under way"}},
		"refused":                   {append(coldOf(0, 2), Sample{Status: 503, Executed: "no", Failure: "x"}), Bounds{}, []string{"1 of 3 calls failed; none may"}},
		"lost is an error and more": {append(coldOf(0, 2), Sample{Outcome: NoAnswer, Failure: "x"}), Bounds{}, []string{"1 of 3 calls failed; none may", "1 of 3 calls were lost; none may be"}},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tt.want, Violations(Summarize(tt.samples, nil), tt.bounds)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestProgressRewritesItsLineOnATerminalOnly(t *testing.T) {
	p := Progress{Sent: 7, Done: 5, InFlight: 2, NotSent: 1, Errors: 3, Calls: 20, Elapsed: 2 * time.Second, Length: 40 * time.Second}
	line := "  2 s of 40 s: sent 7 of 20, done 5, in flight 2, errors 3 (1 not sent)"
	last := Progress{Sent: 20, Done: 20, Calls: 20, Elapsed: 40 * time.Second, Length: 40 * time.Second, Ended: true}
	lastLine := " 40 s of 40 s: sent 20 of 20, done 20, in flight 0, errors 0"

	var terminal bytes.Buffer
	show := ProgressPrinter(&terminal, true)
	show(p)
	show(last)
	if want := "\r\x1b[K" + line + "\r\x1b[K" + lastLine + "\n"; terminal.String() != want {
		t.Errorf("on a terminal %q, want %q", terminal.String(), want)
	}

	var file bytes.Buffer
	show = ProgressPrinter(&file, false)
	for range 11 {
		show(p)
	}
	show(last)
	if want := line + "\n" + line + "\n" + lastLine + "\n"; file.String() != want {
		t.Errorf("elsewhere %q, want %q", file.String(), want)
	}
}
