package experiments

import (
	"bytes"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/fstest"
	"time"

	"github.com/windlass-dev/windlass/internal/sim/report"
)

// tinySize is one at which figures mean nothing.
var tinySize = Size{Seeds: 1, Scale: .01, Sparse: true}

// recorded is a trace of two functions: one that is called all the time, and one that
// is called every twentieth minute.
func recorded() fstest.MapFS {
	const minutes = 180
	header, busy, seldom := "HashOwner,HashApp,HashFunction,Trigger", "o,a,busy,http", "o,b,seldom,timer"
	for i := range minutes {
		header += "," + string(rune('0'+i/100)) + string(rune('0'+i/10%10)) + string(rune('0'+i%10))
		busy += ",30"
		if i%20 == 7 {
			seldom += ",1"
		} else {
			seldom += ",0"
		}
	}
	return fstest.MapFS{
		"invocations.csv": {Data: []byte(header + "\n" + busy + "\n" + seldom + "\n")},
		"durations.csv": {Data: []byte("HashOwner,HashApp,HashFunction,Average,percentile_Average_0,percentile_Average_1,percentile_Average_25," +
			"percentile_Average_50,percentile_Average_75,percentile_Average_99,percentile_Average_100\n" +
			"o,a,busy,100,50,50,80,100,120,200,300\no,b,seldom,3000,1000,1000,2000,3000,4000,5000,6000\n")},
		hybridFile: {Data: []byte("seq,observed_arrival_s,fib_n,cpu_ms_q1_of_14_runs\n" +
			"0,0.0,30,5.5\n1,0.1,30,5.4\n2,0.1,41,450.1\n3,0.2,41,451.1\n4,100,30,5.5\n")},
	}
}

// tryOut runs an experiment at a tiny size.
func tryOut(t *testing.T, e Experiment, o Options) report.Report {
	t.Helper()
	o.Size = tinySize
	if e.NeedsData {
		o.Data, o.Scale = recorded(), .5
	}
	r, err := e.Run(o)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func TestTheSameSeedGivesTheSameBytes(t *testing.T) {
	inOrder := func(n int, do func(int)) {
		for i := range n {
			do(i)
		}
	}
	atOnceFromTheEnd := func(n int, do func(int)) {
		var all sync.WaitGroup
		for i := n - 1; i >= 0; i-- {
			all.Go(func() { do(i) })
		}
		all.Wait()
	}
	for _, e := range All() {
		t.Run(e.Name, func(t *testing.T) {
			write := func(seed uint64, each func(int, func(int))) string {
				var b bytes.Buffer
				if err := tryOut(t, e, Options{Seed: seed, Each: each}).WriteJSON(&b); err != nil {
					t.Fatal(err)
				}
				return b.String()
			}
			first := write(1, inOrder)
			if first != write(1, atOnceFromTheEnd) {
				t.Error("the same seed made another report")
			}
			if strings.Replace(first, `"seed": 1`, `"seed": 8`, 1) == write(8, inOrder) {
				t.Error("another seed made the same report")
			}
		})
	}
}

func TestReportsSayWhatTheyAssumeAndWhatCameOut(t *testing.T) {
	names := map[string]bool{}
	for _, e := range All() {
		measure := func(do func()) (time.Duration, uint64) { do(); return time.Second, 1 << 20 }
		r := tryOut(t, e, Options{Seed: 1, Measure: measure})
		if r.Name != e.Name || r.Seeds != tinySize.Seeds || e.Summary == "" || r.Title == "" || len(r.Notes) == 0 {
			t.Errorf("%s: the report says not what it is: %q, %d seeds, %q", e.Name, r.Name, r.Seeds, r.Title)
		}
		for _, p := range r.Parameters {
			if p.Name == "" || p.Value == "" || p.Source == "" {
				t.Errorf("%s: parameter %+v lacks a value or a source", e.Name, p)
			}
		}
		if len(r.Parameters) == 0 || len(r.Findings) == 0 || len(r.Tables) == 0 {
			t.Errorf("%s: %d parameters, %d findings, %d tables; want some of each", e.Name, len(r.Parameters), len(r.Findings), len(r.Tables))
		}
		for _, f := range r.Findings {
			if names[e.Name+"_"+f.Name] {
				t.Errorf("%s: finding %s is there twice", e.Name, f.Name)
			}
			names[e.Name+"_"+f.Name] = true
		}
		for _, table := range r.Tables {
			for _, row := range table.Rows {
				if len(row) != len(table.Columns) {
					t.Errorf("%s: a row of table %s has %d cells for %d columns", e.Name, table.Name, len(row), len(table.Columns))
				}
			}
		}
		for _, c := range r.Charts {
			if names[c.Name] || c.Title == "" || c.X.Label == "" || c.Y.Label == "" || len(c.Series) == 0 {
				t.Errorf("%s: chart %s is there twice, or lacks a title, a label or series", e.Name, c.Name)
			}
			names[c.Name] = true
		}
	}
}

func TestSizesOutOfRangeAreRefused(t *testing.T) {
	for field, size := range map[string]Size{"Seeds": {Scale: 1}, "Scale": {Seeds: 1, Scale: 1.5}} {
		if _, err := fig3.Run(Options{Size: size}); err == nil || !strings.Contains(err.Error(), field) {
			t.Errorf("%+v: error %v, want one about %s", size, err, field)
		}
	}
	for _, e := range All() {
		for _, size := range []Size{e.Full, e.Quick} {
			if size.Seeds < 1 || !(size.Scale > 0 && size.Scale <= 1) {
				t.Errorf("%s cannot be run at its own size %+v", e.Name, size)
			}
		}
	}
}

func TestTracesAreFoundInFolders(t *testing.T) {
	trace := recorded()
	days := fstest.MapFS{}
	for _, n := range []string{"50", "200"} {
		days[dayDir+"/"+n+"_inv.csv"] = trace["invocations.csv"]
		days[dayDir+"/"+n+"_run.csv"] = trace["durations.csv"]
	}
	days[hoursDir+"/invocations.csv"], days[hoursDir+"/durations.csv"] = trace["invocations.csv"], trace["durations.csv"]
	for _, tt := range []struct {
		fsys   fstest.MapFS
		sparse bool
		want   []string
	}{
		{trace, false, []string{"trace"}},
		{days, false, []string{"day50", "day200", "hours8"}},
		{days, true, []string{"day50"}},
	} {
		found, err := samples(tt.fsys, tt.sparse)
		if err != nil {
			t.Fatal(err)
		}
		var names []string
		for _, s := range found {
			names = append(names, s.name)
			if loaded, err := loadSample(s, Options{Size: Size{Scale: 1}}, 1); err != nil || loaded.Load().Functions != 2 {
				t.Errorf("sample %s: error %v, %d functions", s.name, err, loaded.Load().Functions)
			}
		}
		if !slices.Equal(names, tt.want) {
			t.Errorf("found %v, want %v", names, tt.want)
		}
	}
	if _, err := samples(fstest.MapFS{}, false); err == nil || !strings.Contains(err.Error(), "name another folder") {
		t.Errorf("an empty folder: error %v", err)
	}
	trace["durations.csv"] = &fstest.MapFile{Data: []byte("x\n")}
	if _, err := azure.Run(Options{Size: tinySize, Data: trace}); err == nil || !strings.Contains(err.Error(), "sample trace") {
		t.Errorf("a broken trace: error %v, want one that names the sample", err)
	}
}
