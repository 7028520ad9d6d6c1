package autoscaler

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
)

// meanings explains each reason that changes something.
var meanings = map[Reason]string{
	ReasonNoDemand:   "",
	ReasonFirst:      "first call",
	ReasonBurst:      "more calls came before the first instance was ready",
	ReasonCongestion: "more calls wait than came since the last tick",
	ReasonOverload:   "more calls come than all instances can run",
	ReasonEnough:     "",
	ReasonStale:      "calls have waited for too long",
	ReasonRetry:      "the last start failed, retrying with one",
	ReasonNoRoom:     "no room for what is needed",
	ReasonNoCores:    "the instances wait for cores of their nodes, and more instances would, too",
	ReasonRamp:       "more calls wait than instances are starting, and how long a call takes is not known yet",
	ReasonBacklog:    "the queue would take the instances too long",
	ReasonStanding:   "the queue does not get shorter, though all instances are ready",
	ReasonRate:       "the rate of calls needs more instances",
	ReasonSurplus:    "more instances are starting than are needed",
	ReasonReplace:    "instances were lost while they were needed",
	ReasonMin:        "fewer instances than the minimum",
	ReasonProof:      "calls go to a new revision when an instance of it has started",
	ReasonMax:        "the function has its maximum of instances",
}

// Explain explains a decision to people: what its reason means, how many instances and waiting
// calls there were, and how many instances were needed.
func Explain(s Snapshot, d Decision, p Params) string {
	var parts []string
	for _, more := range []string{meanings[d.Why], suppliedWords(s) + ", " + waitingWords(s, p), neededWords(s, d), roomWords(s, d)} {
		if more != "" {
			parts = append(parts, more)
		}
	}
	if s.Failing {
		parts = append(parts, "the last start failed")
	}
	return strings.Join(parts, "; ")
}

// waitingWords says how many calls wait, and how many of them for long.
func waitingWords(s Snapshot, p Params) string {
	waiting := max(0, s.Waiting())
	text := fmt.Sprintf("%d waiting", waiting)
	var how []string
	if waiting > 0 && s.Stale > 0 && p.StaleAfter > 0 {
		how = append(how, fmt.Sprintf("%d for more than %s", s.Stale, HumanTime(p.StaleAfter)))
	}
	if waiting > 0 && s.OldestWait >= time.Second {
		how = append(how, "the first for "+HumanTime(s.OldestWait))
	}
	if len(how) > 0 {
		text += " (" + strings.Join(how, ", ") + ")"
	}
	return text
}

// neededWords says how many instances were needed, and what for; empty if the decider computed
// no number.
func neededWords(s Snapshot, d Decision) string {
	calls := "calls"
	if d.Rate > 0 {
		calls = humanRate(d.Rate) + " calls/s"
	}
	switch {
	case s.MeanExecution > 0 && d.Rate > 0:
		calls += " × " + HumanTime(s.MeanExecution)
	case s.MeanExecution > 0:
		calls += " of " + HumanTime(s.MeanExecution)
	default:
		calls += " of unknown duration"
	}
	if s.Concurrency > 1 {
		calls += fmt.Sprintf(", %d at a time,", s.Concurrency)
	}
	switch {
	case d.Required > 0 && d.Horizon > 0:
		return fmt.Sprintf("%s need %s within %s", calls, instances(d.Required), HumanTime(d.Horizon))
	case d.Required > 0:
		return fmt.Sprintf("%s need %s", calls, instances(d.Required))
	case d.Rate > 0:
		return strings.TrimSuffix(calls, ",")
	}
	return ""
}

// roomWords says how many more instances fit, if fewer than needed.
func roomWords(s Snapshot, d Decision) string {
	missing := max(d.Create, d.Required-s.Created-s.Creating)
	if s.Room < 0 || missing <= 0 || s.Room > missing {
		return ""
	}
	return fmt.Sprintf("room for %d more", s.Room)
}

// suppliedWords says which instances exist.
func suppliedWords(s Snapshot) string {
	text := instances(s.Created)
	if s.Created > 0 {
		text += fmt.Sprintf(", %d busy", s.Busy)
	}
	if s.AwaitingCore > 0 {
		text += fmt.Sprintf(", %d waiting for cores", s.AwaitingCore)
	}
	if s.Creating > 0 {
		text += fmt.Sprintf(", %d starting", s.Creating)
		if s.MeanStart > 0 {
			text += fmt.Sprintf(" (a start takes %s)", HumanTime(s.MeanStart))
		}
	}
	if s.Lost > 0 {
		text += fmt.Sprintf(", %d lost", s.Lost)
	}
	return text
}

func instances(n int) string {
	if n == 1 {
		return "1 instance"
	}
	return fmt.Sprintf("%d instances", n)
}

// HumanTime writes a duration with at most three digits, in the unit that people compare: 400
// µs, 5.2 ms, 50 ms, 1.5 s, 3 min.
func HumanTime(d time.Duration) string {
	switch {
	case d < 999500*time.Nanosecond:
		return few(float64(d)/float64(time.Microsecond)) + " µs"
	case d < 999500*time.Microsecond:
		return few(float64(d)/float64(time.Millisecond)) + " ms"
	case d < 2*time.Minute:
		return few(d.Seconds()) + " s"
	}
	return few(d.Minutes()) + " min"
}

func humanRate(perSecond float64) string {
	if perSecond < 0.1 {
		return "under 0.1"
	}
	return few(perSecond)
}

// few writes a number with one decimal below ten and none above.
func few(v float64) string {
	if v < 9.95 {
		return strings.TrimSuffix(strconv.FormatFloat(v, 'f', 1, 64), ".0")
	}
	return strconv.FormatFloat(math.Round(v), 'f', 0, 64)
}
