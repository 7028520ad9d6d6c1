package bench

import (
	"fmt"
	"strconv"
)

// Bounds are what a replay must keep to besides having no error and no lost
// call.
type Bounds struct {
	// ColdStartRatio is what the share of cold starts must stay below, 0 to
	// 1; 0 means 0.05.
	ColdStartRatio float64
}

const defaultColdStartRatio = .05

// Verdict says what failed, one sentence each; nothing if nothing did. A replay
// without calls, or one whose calls were broken off, has failed too.
func Verdict(r Report, b Bounds) []string {
	if b.ColdStartRatio == 0 {
		b.ColdStartRatio = defaultColdStartRatio
	}
	var failed []string
	if r.Total.Calls == 0 {
		failed = append(failed, "no call was made")
	}
	if n := r.Total.CutOff; n > 0 {
		failed = append(failed, fmt.Sprintf("the replay was stopped with %d calls under way", n))
	}
	if n := r.Total.Errors; n > 0 {
		failed = append(failed, fmt.Sprintf("%d of %d calls failed; none may", n, r.Total.Calls))
	}
	if n := r.Total.Lost; n > 0 {
		failed = append(failed, fmt.Sprintf("%d of %d calls were lost; none may be", n, r.Total.Calls))
	}
	if r.Total.ColdStartRatio() >= b.ColdStartRatio && r.Total.Calls > 0 {
		failed = append(failed, fmt.Sprintf("%d of %d calls were cold starts (%s); they must stay below %s",
			r.Total.ColdStarts, r.Total.Calls, percent(r.Total.ColdStartRatio()), percent(b.ColdStartRatio)))
	}
	return failed
}

func percent(ratio float64) string { return strconv.FormatFloat(100*ratio, 'f', 1, 64) + " %" }
