package invocation

import (
	"strconv"
	"strings"
	"time"
)

// HeaderTiming is the header of an answer that says how the call's time was spent. It is a web
// standard: a function may have entries of its own in it, and the gateway's come last.
const HeaderTiming = "Server-Timing"

// Timing is what the time of a call that was answered was spent on.
type Timing struct {
	// Queue is the time from the call's receipt until an instance had it.
	Queue time.Duration
	// Cold says that the call was the first of its instance.
	Cold bool
	// Function is the function's own time until its answer began, or ended if that is
	// small.
	Function time.Duration
}

// What the entries are named.
const (
	timingQueue    = "queue"
	timingStart    = "start"
	timingFunction = "function"
)

// String is a value of the header: times in milliseconds, and a start only if it was one.
func (t Timing) String() string {
	b := appendTiming(make([]byte, 0, 64), timingQueue, t.Queue)
	if t.Cold {
		b = append(b, ", "+timingStart...)
	}
	return string(appendTiming(append(b, ", "...), timingFunction, t.Function))
}

func appendTiming(b []byte, name string, took time.Duration) []byte {
	b = append(append(b, name...), ";dur="...)
	return strconv.AppendFloat(b, float64(took)/float64(time.Millisecond), 'f', 3, 64)
}

// ParseTiming reads what String wrote, from all values of the header in an answer. known is
// false if none has it.
func ParseTiming(values []string) (t Timing, known bool) {
	// A proxy may have joined the values. What a function has said comes first.
	all := strings.Join(values, ",")
	own := strings.LastIndex(all, timingQueue+";dur=")
	if own < 0 {
		return Timing{}, false
	}
	var queue, function bool
	for entry := range strings.SplitSeq(all[own:], ",") {
		name, took, _ := strings.Cut(strings.TrimSpace(entry), ";dur=")
		switch name {
		case timingQueue:
			t.Queue, queue = milliseconds(took)
		case timingFunction:
			t.Function, function = milliseconds(took)
		case timingStart:
			t.Cold = true
		}
	}
	if !queue || !function {
		return Timing{}, false
	}
	return t, true
}

// milliseconds reads a number of milliseconds such as 12.5.
func milliseconds(text string) (time.Duration, bool) {
	ms, err := strconv.ParseFloat(text, 64)
	// Ten years keep the product within a time.Duration.
	if err != nil || !(ms >= 0 && ms < 10*365*24*3600*1000) {
		return 0, false
	}
	return time.Duration(ms * float64(time.Millisecond)), true
}
