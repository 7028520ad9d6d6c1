package experiments

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"testing/fstest"
	"time"
)

func TestLoadsAreReadOrDrawn(t *testing.T) {
	text := "interval,target_qps\n"
	for i := range colocateSteps {
		text += fmt.Sprintf("%d,%d\n", i, 5000+i)
	}
	folder := func(text string) fstest.MapFS { return fstest.MapFS{colocateFile: {Data: []byte(text)}} }
	read, err := loadColocate(folder(text))
	if err != nil || len(read.loads) != colocateSteps || read.loads[359] != 5359 || !strings.Contains(read.source, "mcperf draws") {
		t.Errorf("%d loads, %q, %v", len(read.loads), read.source, err)
	}
	drawn, err := loadColocate(fstest.MapFS{})
	if err != nil || len(drawn.loads) != colocateSteps || !strings.Contains(drawn.source, "drawn here") {
		t.Errorf("%d loads, %q, %v", len(drawn.loads), drawn.source, err)
	}
	least, most := drawn.loads[0], drawn.loads[0]
	for _, load := range drawn.loads {
		least, most = min(least, load), max(most, load)
	}
	if least < 5000 || least > 7000 || most > 100000 || most < 98000 {
		t.Errorf("drawn loads are from %g to %g", least, most)
	}
	for _, broken := range []string{"x\n", "interval,target_qps\n0,5000\n", strings.Replace(text, ",5007\n", ",many\n", 1)} {
		if _, err := loadColocate(folder(broken)); err == nil || !strings.Contains(err.Error(), colocateFile) {
			t.Errorf("error %v, want one that names the file", err)
		}
	}
}

// TestTwoStateAgreesWithTheReport is about what was tuned, and about what was not: steps of 6 and
// of 5 s.
func TestTwoStateAgreesWithTheReport(t *testing.T) {
	if _, err := os.Stat(dataFolder + "/" + colocateFile); err != nil {
		t.Skipf("it replays recorded loads: %v", err)
	}
	trace, err := loadColocate(os.DirFS(dataFolder))
	if err != nil {
		t.Fatal(err)
	}
	for every, want := range map[int]float64{10: 2.55, 6: 2.78, 5: 3.05} {
		out, err := colocateRun{
			loads: trace.loads, every: time.Duration(every) * time.Second, policy: colocatePolicies()[1], service: colocateService(), scale: 1,
		}.once()
		if err != nil {
			t.Fatal(err)
		}
		if out.violations < want/2 || out.violations > 2*want {
			t.Errorf("at %d s %.2f %% are violated; the report has %.2f", every, out.violations, want)
		}
		within(t, "makespan", out.Makespan.Seconds(), 1570, .03)
	}
}
