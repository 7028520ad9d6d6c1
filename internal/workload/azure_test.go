package workload

import (
	"fmt"
	"io/fs"
	"math"
	"os"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

const (
	invocationsHeader = "HashOwner,HashApp,HashFunction,Trigger,480,481,482\n"
	durationsHeader   = "HashOwner,HashApp,HashFunction,Average,Count,Minimum,Maximum," +
		"percentile_Average_0,percentile_Average_1,percentile_Average_25,percentile_Average_50,percentile_Average_75,percentile_Average_99,percentile_Average_100\n"
	steps = "100,1,0,0,10,20,100,200,300,400,500\n"
)

func azureFS(invocations, durations string) fs.FS {
	return fstest.MapFS{
		AzureInvocations: {Data: []byte(invocations)},
		AzureDurations:   {Data: []byte(durations)},
	}
}

func TestAzureCountsAreKeptMinuteByMinute(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		counts := rapid.SliceOfN(rapid.IntRange(0, 30), 6, 6).Draw(t, "counts")
		o := AzureOptions{
			Seed:        rapid.Uint64().Draw(t, "seed"),
			FirstMinute: rapid.IntRange(0, 2).Draw(t, "first"),
		}
		o.Minutes = rapid.IntRange(1, 3-o.FirstMinute).Draw(t, "minutes")
		fsys := azureFS(
			invocationsHeader+fmt.Sprintf("o,a,ff,http,%d,%d,%d\no,a,gg,http,%d,%d,%d\n", counts[0], counts[1], counts[2], counts[3], counts[4], counts[5]),
			durationsHeader+"o,a,ff,"+steps+"o,a,gg,"+steps)
		trace, err := LoadAzure(fsys, o)
		if err != nil {
			t.Fatal(err)
		}
		if err := trace.Validate(); err != nil {
			t.Fatal(err)
		}
		want, got := map[string]int{}, map[string]int{}
		for m := range o.Minutes {
			want[fmt.Sprint("ff", m)] += counts[o.FirstMinute+m]
			want[fmt.Sprint("gg", m)] += counts[3+o.FirstMinute+m]
		}
		for _, a := range trace.Arrivals {
			got[fmt.Sprint(a.Function, int(a.At/time.Minute))]++
			if a.Duration < 10*ms || a.Duration > 500*ms {
				t.Fatalf("%+v is outside of its function's percentiles", a)
			}
		}
		for minute, n := range want {
			if got[minute] != n {
				t.Fatalf("%d calls in %s, want %d", got[minute], minute, n)
			}
		}
		again, _ := LoadAzure(fsys, o)
		if diff := cmp.Diff(trace, again); diff != "" {
			t.Fatal(diff)
		}
	})
}

func TestAMinuteIsTheSameWhateverIsLoadedWithIt(t *testing.T) {
	fsys := azureFS(invocationsHeader+"o,a,ff,http,5,6,7\n", durationsHeader+"o,a,ff,"+steps)
	all, err := LoadAzure(fsys, AzureOptions{Seed: 7, Minutes: 3})
	if err != nil {
		t.Fatal(err)
	}
	second, err := LoadAzure(fsys, AzureOptions{Seed: 7, FirstMinute: 1, Minutes: 1})
	if err != nil {
		t.Fatal(err)
	}
	window, err := Shape{Start: time.Minute, Length: time.Minute}.Apply(all)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(window.Arrivals, second.Arrivals); diff != "" {
		t.Error(diff)
	}
	other, err := LoadAzure(fsys, AzureOptions{Seed: 8, FirstMinute: 1, Minutes: 1})
	if err != nil {
		t.Fatal(err)
	}
	if cmp.Equal(other.Arrivals, second.Arrivals) {
		t.Error("two seeds made the same minute")
	}
}

func TestArrivalsSpreadOverTheMinute(t *testing.T) {
	trace, err := LoadAzure(azureFS(invocationsHeader+"o,a,ff,http,60000,0,0\n", durationsHeader+"o,a,ff,"+steps), AzureOptions{Seed: 3, Minutes: 1})
	if err != nil {
		t.Fatal(err)
	}
	var perTenth [10]int
	for _, a := range trace.Arrivals {
		perTenth[a.At/(6*sec)]++
	}
	for i, n := range perTenth {
		if n < 5700 || n > 6300 {
			t.Errorf("tenth %d of the minute has %d calls, want about 6000", i, n)
		}
	}
}

func TestInverseTransformHitsThePercentilesAndIsLinearBetween(t *testing.T) {
	d := durationTable{ms: [7]float64{10, 20, 100, 200, 300, 400, 500}}
	for u, want := range map[float64]time.Duration{
		0: 10 * ms, .005: 15 * ms, .01: 20 * ms, .13: 60 * ms, .25: 100 * ms, .375: 150 * ms, .5: 200 * ms,
		.75: 300 * ms, .87: 350 * ms, .99: 400 * ms, .995: 450 * ms, 1: 500 * ms,
	} {
		if got := d.quantile(u); (got - want).Abs() > time.Microsecond {
			t.Errorf("at %v: %v, want %v", u, got, want)
		}
	}
}

func TestDrawnQuantilesAreNearTheTable(t *testing.T) {
	trace, err := LoadAzure(azureFS(invocationsHeader+"o,a,ff,http,20000,0,0\n", durationsHeader+"o,a,ff,"+steps), AzureOptions{Seed: 5, Minutes: 1})
	if err != nil {
		t.Fatal(err)
	}
	checkShares(t, trace.Arrivals, map[float64]time.Duration{.01: 20 * ms, .25: 100 * ms, .5: 200 * ms, .75: 300 * ms, .99: 400 * ms})
}

// checkShares compares shares, not durations: beside a long tail a tiny error
// of the share is a large one of the duration.
func checkShares(t *testing.T, arrivals []Arrival, table map[float64]time.Duration) {
	t.Helper()
	for want, limit := range table {
		within := 0
		for _, a := range arrivals {
			if a.Duration <= limit {
				within++
			}
		}
		// Five standard errors of a share among so many calls.
		tolerance := 5 * math.Sqrt(want*(1-want)/float64(len(arrivals)))
		if got := float64(within) / float64(len(arrivals)); math.Abs(got-want) > tolerance {
			t.Errorf("%.4f of the durations are at most %v, want about %.2f", got, limit, want)
		}
	}
}

func TestWhatAzureLeavesOutAndOverstatesIsNoted(t *testing.T) {
	trace, err := LoadAzure(azureFS(
		invocationsHeader+"o,a,ff,http,1,0,0\no,a,gg,http,2,3,0\n",
		durationsHeader+"o,a,ff,7,1,0,0,5,5,5,5,5,5,5\n"), AzureOptions{Seed: 1, Minutes: 2})
	if err != nil {
		t.Fatal(err)
	}
	want := []string{
		"arrivals: each minute's calls of a function uniformly at random over the minute, seed 1",
		"durations: drawn from each function's percentiles, linear between them; they average 5 ms, the recorded averages 7 ms",
		"left out for want of durations: 1 functions with 5 calls",
	}
	if diff := cmp.Diff(want, trace.Notes); diff != "" {
		t.Error(diff)
	}
	if trace.Name != "azure minutes 480 to 481" || len(trace.Arrivals) != 1 {
		t.Errorf("trace %q has %d calls", trace.Name, len(trace.Arrivals))
	}
}

func TestNoMinutesAreAllMinutes(t *testing.T) {
	fsys := azureFS(invocationsHeader+"o,a,ff,http,5,6,7\n", durationsHeader+"o,a,ff,"+steps)
	for first, want := range []int{3, 2, 1} {
		trace, err := LoadAzure(fsys, AzureOptions{FirstMinute: first})
		if err != nil || trace.Length != time.Duration(want)*time.Minute {
			t.Errorf("from minute %d on: %v, %v; want %d minutes", first, trace.Length, err, want)
		}
	}
	if _, err := LoadAzure(fsys, AzureOptions{FirstMinute: 3}); err == nil {
		t.Error("there is no minute after the last")
	}
}

func TestMemoryIsThatOfTheApp(t *testing.T) {
	fsys := azureFS(invocationsHeader+"o,a,ff,http,1,0,0\no,b,gg,http,1,0,0\no,c,hh,http,1,0,0\n",
		durationsHeader+"o,a,ff,"+steps+"o,b,gg,"+steps+"o,c,hh,"+steps)
	load := func() (Trace, error) { return LoadAzure(fsys, AzureOptions{}) }
	if trace, err := load(); err != nil || trace.Memory != nil {
		t.Errorf("memory %v without a file of it, error %v", trace.Memory, err)
	}
	fsys.(fstest.MapFS)[AzureMemory] = &fstest.MapFile{Data: []byte("HashOwner,HashApp,AverageAllocatedMb\no,a,100\no,b,200\nx,a,300\n")}
	trace, err := load()
	if err != nil {
		t.Fatal(err)
	}
	if want := map[string]int64{"ff": 100 << 20, "gg": 200 << 20, "hh": 200 << 20}; !cmp.Equal(trace.Memory, want) {
		t.Errorf("memory %v, want %v", trace.Memory, want)
	}
	for _, megabytes := range []string{"-1", "much", "NaN", "1e300"} {
		fsys.(fstest.MapFS)[AzureMemory] = &fstest.MapFile{Data: []byte("HashOwner,HashApp,AverageAllocatedMb\no,a," + megabytes + "\n")}
		if _, err := load(); err == nil || !strings.Contains(err.Error(), "line 2") {
			t.Errorf("%s MB: %v, want an error about line 2", megabytes, err)
		}
	}
}

func TestShortIDsTellFunctionsApart(t *testing.T) {
	invocations, durations := invocationsHeader, durationsHeader
	for _, key := range []string{"o1,appappapp1,functionX", "o1,appappapp2,functionX", "o2,appappapp2,functionX", "o3,a,f"} {
		invocations += key + ",http,1,0,0\n"
		durations += key + "," + steps
	}
	trace, err := LoadAzure(azureFS(invocations, durations), AzureOptions{Minutes: 1})
	if err != nil {
		t.Fatal(err)
	}
	want := []string{"f", "function", "function-appappap", "functionX-appappapp2-o2"}
	if diff := cmp.Diff(want, functionsOf(trace)); diff != "" {
		t.Error(diff)
	}
}

func TestMinuteColumnsMayBeCalledMinuteN(t *testing.T) {
	trace, err := LoadAzure(azureFS("HashFunction,HashOwner,HashApp,minute_1,minute_2\nff,o,a,1,4\n", durationsHeader+"o,a,ff,"+steps),
		AzureOptions{FirstMinute: 1, Minutes: 1})
	if err != nil {
		t.Fatal(err)
	}
	if len(trace.Arrivals) != 4 {
		t.Errorf("%d calls, want 4", len(trace.Arrivals))
	}
}

func TestWrongAzureFilesAreRefusedWithTheirPlace(t *testing.T) {
	goodI, goodD := invocationsHeader+"o,a,f,http,1,2,3\n", durationsHeader+"o,a,f,"+steps
	for name, tt := range map[string]struct {
		fsys fs.FS
		want string
	}{
		"no file":          {fstest.MapFS{AzureDurations: {Data: []byte(goodD)}}, "needs the file invocations.csv"},
		"empty file":       {azureFS("", goodD), "invocations.csv has no header"},
		"no hash column":   {azureFS("HashOwner,HashApp,480,481,482\n", goodD), "no column HashFunction"},
		"no percentile":    {azureFS(goodI, "HashOwner,HashApp,HashFunction,Average\n"), "durations.csv has no column percentile_Average_0"},
		"too few minutes":  {azureFS("HashOwner,HashApp,HashFunction,480\n", goodD), "has 1 minutes, but 3 from minute 0 on were asked for"},
		"not a count":      {azureFS(goodI+"o,a,g,http,1,-2,3\n", goodD), `invocations.csv line 3: minute 481: "-2" is not a number of calls`},
		"function twice":   {azureFS(goodI+"o,a,f,http,1,2,3\n", goodD), "function f occurs twice"},
		"durations twice":  {azureFS(goodI, goodD+"o,a,f,"+steps), "function f occurs twice"},
		"missing field":    {azureFS(goodI+"o,a\n", goodD), "line 3"},
		"broken quote":     {azureFS(goodI+"\"o\n", goodD), "line 3"},
		"not a duration":   {azureFS(goodI, durationsHeader+"o,a,f,100,1,0,0,10,x,100,200,300,400,500\n"), `percentile_Average_1: "x"`},
		"infinite":         {azureFS(goodI, durationsHeader+"o,a,f,100,1,0,0,10,10,100,200,300,400,1e300\n"), "percentile_Average_100"},
		"falling":          {azureFS(goodI, durationsHeader+"o,a,f,100,1,0,0,10,20,100,200,300,200,500\n"), "percentile_Average_99 is less than percentile_Average_75"},
		"average is empty": {azureFS(goodI, durationsHeader+"o,a,f,,1,0,0,10,20,100,200,300,400,500\n"), "Average"},
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := LoadAzure(tt.fsys, AzureOptions{Minutes: 3}); err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("error %v, want one with %q", err, tt.want)
			}
		})
	}
	for field, o := range map[string]AzureOptions{"FirstMinute": {FirstMinute: -1, Minutes: 1}, "Minutes": {Minutes: -1}} {
		if _, err := LoadAzure(azureFS(goodI, goodD), o); err == nil || !strings.Contains(err.Error(), field) {
			t.Errorf("%+v: error %v, want one about %s", o, err, field)
		}
	}
}

// TestTheHundredFunctionSample reads a real sample, which is not part of the
// project.
func TestTheHundredFunctionSample(t *testing.T) {
	const dir = "../../../shared/data/azure2019_100fn_8h"
	if _, err := os.Stat(dir); err != nil {
		t.Skipf("the Azure sample of 100 functions is not there: %v", err)
	}
	trace, err := LoadAzure(os.DirFS(dir), AzureOptions{Seed: 1, Minutes: 480})
	if err != nil {
		t.Fatal(err)
	}
	if err := trace.Validate(); err != nil {
		t.Fatal(err)
	}
	l := trace.Load()
	if l.Calls != 339_657 || l.Functions != 100 {
		t.Errorf("%d calls of %d functions, want 339657 of 100", l.Calls, l.Functions)
	}
	// The busiest function's percentiles, as durations.csv has them.
	byFunction := map[string][]Arrival{}
	for _, a := range trace.Arrivals {
		byFunction[a.Function] = append(byFunction[a.Function], a)
	}
	var busiest Trace
	for _, arrivals := range byFunction {
		if len(arrivals) > len(busiest.Arrivals) {
			busiest.Arrivals = arrivals
		}
	}
	if n := len(busiest.Arrivals); n != 273_379 {
		t.Errorf("the busiest function has %d calls, want 273379", n)
	}
	checkShares(t, busiest.Arrivals, map[float64]time.Duration{.01: 550 * ms, .25: 713 * ms, .5: 816 * ms, .75: 979 * ms, .99: 2626 * ms})
}
