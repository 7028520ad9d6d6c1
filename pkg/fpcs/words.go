package fpcs

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
)

// meanings say each reason in words.
var meanings = map[Reason]string{
	ReasonNoDemand:   "no further instance is needed",
	ReasonFirst:      "the first call came",
	ReasonBurst:      "more calls came before the first instance was there",
	ReasonCongestion: "more calls wait than came since the last tick",
	ReasonOverload:   "more calls come than all instances can run",
	ReasonEnough:     "what is there or starting suffices",
	ReasonStale:      "calls have waited for too long",
	ReasonRetry:      "the last start failed, and is tried again with one",
	ReasonNoRoom:     "there is no room for what is needed",
	ReasonRamp:       "more calls wait than instances are starting, and how long a call takes is not known yet",
	ReasonBacklog:    "what waits would take the instances too long",
	ReasonStanding:   "as many calls wait as did long ago, though all instances are there",
	ReasonRate:       "calls come at a rate that needs more instances",
	ReasonSurplus:    "more instances are starting than are needed",
	ReasonReplace:    "instances were lost while they were needed",
	ReasonMin:        "there are fewer instances than the least",
	ReasonMax:        "the function has as many instances as it may have",
}

// Words say why a decision is as it is, and on what it was made, for people: the
// reason with its meaning, what waits, what is needed, and what there is.
func Words(s Snapshot, d Decision, p Params) string {
	parts := []string{fmt.Sprintf("%s: %s", d.Why, meanings[d.Why]), waitingWords(s, p)}
	for _, more := range []string{neededWords(s, d), roomWords(s, d), suppliedWords(s)} {
		if more != "" {
			parts = append(parts, more)
		}
	}
	if s.Failing {
		parts = append(parts, "the last start failed")
	}
	return strings.Join(parts, "; ")
}

// waitingWords say what waits, and how much of it for long.
func waitingWords(s Snapshot, p Params) string {
	waiting := s.Waiting()
	if waiting <= 0 {
		return "no call waits"
	}
	text := fmt.Sprintf("%d calls wait", waiting)
	if waiting == 1 {
		text = "1 call waits"
	}
	var how []string
	if s.Stale > 0 && p.StaleAfter > 0 {
		how = append(how, fmt.Sprintf("%d for more than %s", s.Stale, HumanTime(p.StaleAfter)))
	}
	if s.OldestWait >= time.Second {
		how = append(how, "the first for "+HumanTime(s.OldestWait))
	}
	if len(how) > 0 {
		text += " (" + strings.Join(how, ", ") + ")"
	}
	return text
}

// neededWords say how many instances were found to be needed and what for;
// nothing if that was not asked.
func neededWords(s Snapshot, d Decision) string {
	each := "of unknown duration"
	if s.MeanExecution > 0 {
		each = "of " + HumanTime(s.MeanExecution)
	}
	if s.Concurrency > 1 {
		each += fmt.Sprintf(", %d at a time,", s.Concurrency)
	}
	come := "calls"
	if d.Rate > 0 {
		come = humanRate(d.Rate) + " calls/s"
	}
	switch {
	case d.Required > 0 && d.Horizon > 0:
		return fmt.Sprintf("%s %s need %s within %s", come, each, instances(d.Required), HumanTime(d.Horizon))
	case d.Required > 0:
		return fmt.Sprintf("%s %s need %s", come, each, instances(d.Required))
	case d.Rate > 0:
		return fmt.Sprintf("%s %s come", come, each)
	}
	return ""
}

// roomWords say how many more there may be, if that is fewer than are needed.
func roomWords(s Snapshot, d Decision) string {
	missing := max(d.Create, d.Required-s.Created-s.Creating)
	switch {
	case s.Room < 0 || missing <= 0 || s.Room > missing:
		return ""
	case s.Room == 0:
		return "there is room for none"
	}
	return fmt.Sprintf("there is room for %d more", s.Room)
}

// suppliedWords say what instances there are.
func suppliedWords(s Snapshot) string {
	text := "no instance is there"
	if s.Created > 0 {
		text = fmt.Sprintf("%d there (%d busy)", s.Created, s.Busy)
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

// HumanTime writes a duration with at most three digits, and no more of a unit
// than people compare: 400 µs, 5.2 ms, 50 ms, 1.5 s, 3 min.
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
