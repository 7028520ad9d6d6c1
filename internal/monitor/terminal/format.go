package terminal

import (
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/windlass-dev/windlass/internal/monitor"
	"github.com/windlass-dev/windlass/pkg/autoscaler"
)

// formatSeconds writes seconds with few digits, and nothing for 0.
func formatSeconds(seconds float64) string {
	if seconds <= 0 {
		return ""
	}
	return autoscaler.HumanTime(time.Duration(seconds * float64(time.Second)))
}

// perSecond writes a rate with no more digits than it deserves.
func perSecond(rate float64) string {
	switch {
	case rate == 0:
		return "0"
	case rate < 0.1:
		return "<0.1"
	case rate < 9.95:
		return fmt.Sprintf("%.1f", rate)
	case rate < 99_999.5:
		return fmt.Sprintf("%.0f", rate)
	}
	return fmt.Sprintf("%.0fk", rate/1000)
}

var blocks = []rune("▁▂▃▄▅▆▇█")

// spark draws the last values as a row of blocks, as high as the largest of them
// allows. Where there is no value there is a blank, and so there is for 0.
func spark(values []float64, width int) string {
	values = values[max(0, len(values)-width):]
	largest := 0.0
	for _, v := range values {
		largest = max(largest, v)
	}
	out := []rune(strings.Repeat(" ", width-len(values)))
	for _, v := range values {
		if v <= 0 {
			out = append(out, ' ')
			continue
		}
		level := int(math.Ceil(v/largest*float64(len(blocks)))) - 1
		out = append(out, blocks[min(max(level, 0), len(blocks)-1)])
	}
	return string(out)
}

// bar draws a share from 0 to 1, in eighths of a character.
func bar(share float64, width int) string {
	eighths := int(math.Round(min(max(share, 0), 1) * float64(width*8)))
	text := strings.Repeat("█", eighths/8)
	if part := eighths % 8; part > 0 {
		text += string([]rune("▏▎▍▌▋▊▉")[part-1])
	}
	return text
}

// decided says what was decided and why.
func decided(d *monitor.Decision) string { return d.What + ": " + d.Why }

// decidedLast is the change of a decision and its reason. A function that nothing was
// decided on lately has none.
func decidedLast(d *monitor.Decision) string {
	switch {
	case d == nil:
		return ""
	case d.Cancelled > 0:
		return fmt.Sprintf("-%d %s", d.Cancelled, d.Reason)
	case d.Changed:
		return fmt.Sprintf("+%d %s", d.Launched, d.Reason)
	}
	return d.Reason
}

// ago says how long something is past.
func ago(at, now time.Time) string {
	d := now.Sub(at)
	switch {
	case d < 1500*time.Millisecond:
		return "now"
	case d < 2*time.Minute:
		return fmt.Sprintf("%d s ago", int(d.Round(time.Second).Seconds()))
	case d < 2*time.Hour:
		return fmt.Sprintf("%d min ago", int(d.Minutes()))
	}
	return fmt.Sprintf("%d h ago", int(d.Hours()))
}

func plural(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, many)
}
