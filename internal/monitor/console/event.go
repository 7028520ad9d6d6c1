package console

import (
	"fmt"
	"hash/fnv"
	"log/slog"
	"slices"
	"strings"
	"time"

	"github.com/windlass-dev/windlass/internal/monitor"
	"github.com/windlass-dev/windlass/pkg/autoscaler"
)

// event is a line of the console.
type event struct {
	at time.Time
	// function and instance may be empty.
	function, instance string
	// mark says what kind of line it is, and colour how it looks; empty for usual.
	mark, colour string
	text         string
}

// Marks of lines.
const (
	printed  = "│"
	happened = "·"
	wrong    = "!"
)

// Colours, of the terminal's own palette.
const (
	reset  = "\x1b[0m"
	faint  = "\x1b[2m"
	red    = "\x1b[31m"
	green  = "\x1b[32m"
	yellow = "\x1b[33m"
)

// ofFunctions are the colours that tell functions apart.
var ofFunctions = []string{"\x1b[36m", "\x1b[35m", "\x1b[34m", "\x1b[96m", "\x1b[95m", "\x1b[94m"}

// message is a record of a log that people want to see, in their words.
type message struct {
	colour string
	text   func(attrs fields) string
}

// fields are the attributes of a record.
type fields map[string]slog.Value

func (f fields) text(key string) string {
	v, ok := f[key]
	if !ok {
		return ""
	}
	return v.String()
}

func (f fields) number(key string) int64 {
	if v, ok := f[key]; ok && v.Kind() == slog.KindInt64 {
		return v.Int64()
	}
	return 0
}

// messages are by what the log calls them.
var messages = map[string]message{
	"launched instances": {faint, func(f fields) string {
		return fmt.Sprintf("starting %s (%s)", instances(f.number("launched")), f.text("reason"))
	}},
	"an instance is ready": {green, func(f fields) string {
		if v, ok := f["took"]; ok && v.Kind() == slog.KindDuration {
			return "ready after " + autoscaler.HumanTime(v.Duration())
		}
		return "ready"
	}},
	"instance ended":                              {faint, func(f fields) string { return "ended: " + f.text("reason") }},
	"an instance did not start":                   {red, func(f fields) string { return "did not start: " + f.text("reason") }},
	"no node has room for an instance":            {yellow, func(f fields) string { return "no room for an instance: " + f.text("reason") }},
	"released an idle instance":                   {faint, func(fields) string { return "stopping an idle instance" }},
	"evicted an idle instance":                    {faint, func(f fields) string { return "stopping an idle instance: " + f.text("reason") }},
	"cancelled instances that were being created": {faint, func(f fields) string { return "cancelled " + instances(f.number("cancelled")) + " not needed any more" }},
	"call ended":                                  {"", callText},
}

func instances(n int64) string {
	if n == 1 {
		return "1 instance"
	}
	return fmt.Sprintf("%d instances", n)
}

// callText is the line of a call.
func callText(f fields) string {
	text := fmt.Sprintf("call %d", f.number("code"))
	if reason := f.text("reason"); reason != "" {
		text += " " + reason
	}
	received, ended := f["received"], f["ended"]
	if received.Kind() == slog.KindTime && ended.Kind() == slog.KindTime {
		text += " in " + autoscaler.HumanTime(ended.Time().Sub(received.Time()))
	}
	if cold, ok := f["cold"]; ok && cold.Kind() == slog.KindBool && cold.Bool() {
		text += ", cold start"
	}
	return text + "  " + f.text("invocation")
}

// read makes an event of a record; false if it is not shown.
func read(record slog.Record, with []slog.Attr, level slog.Level) (event, bool) {
	f := make(fields)
	var rest []string
	add := func(a slog.Attr) bool {
		f[a.Key] = a.Value.Resolve()
		if a.Key != "function" && a.Key != "cid" {
			rest = append(rest, a.Key+"="+a.Value.Resolve().String())
		}
		return true
	}
	for _, a := range with {
		add(a)
	}
	record.Attrs(add)
	e := event{at: record.Time, function: f.text("function"), instance: f.text("cid"), mark: happened}
	m, known := messages[record.Message]
	switch {
	case known:
		e.text, e.colour = m.text(f), m.colour
	case record.Level < slog.LevelWarn && level > slog.LevelDebug:
		return e, false
	default:
		e.text, e.colour = record.Message, faint
		slices.Sort(rest)
		if len(rest) > 0 {
			e.text += ": " + strings.Join(rest, " ")
		}
	}
	switch {
	case record.Level >= slog.LevelError:
		e.mark, e.colour = wrong, red
	case record.Level >= slog.LevelWarn:
		e.mark = wrong
		if !known {
			e.colour = yellow
		}
	}
	if record.Message == "call ended" && f.number("code") >= 500 {
		e.mark, e.colour = wrong, red
	}
	return e, true
}

// style is how lines are drawn.
type style struct {
	colours bool
	// home is the namespace whose functions are named without it.
	home string
	// width is that of the names so far.
	width int
}

// render is the line of an event, with its end.
func (l *style) render(e event) string {
	const narrowest, widest = 12, 24
	name := monitor.Printable(strings.TrimPrefix(e.function, l.home+"/"))
	l.width = min(max(l.width, len([]rune(name)), narrowest), widest)
	var line strings.Builder
	line.WriteString(l.paint(faint, e.at.Format("15:04:05.000")))
	line.WriteString(" " + l.paint(colourOf(name), fmt.Sprintf("%-*s", l.width, name)))
	line.WriteString(" " + l.paint(faint, fmt.Sprintf("%-5s", Short(e.instance))))
	text := monitor.Printable(e.text)
	if e.mark == printed {
		line.WriteString(" " + l.paint(colourOf(name), e.mark) + " " + text)
	} else {
		line.WriteString(" " + l.paint(e.colour, e.mark+" "+text))
	}
	return strings.TrimRight(line.String(), " ") + "\n"
}

func (l *style) paint(colour, text string) string {
	if !l.colours || colour == "" || strings.TrimSpace(text) == "" {
		return text
	}
	return colour + text + reset
}

func colourOf(name string) string {
	h := fnv.New32a()
	_, _ = h.Write([]byte(name))
	return ofFunctions[h.Sum32()%uint32(len(ofFunctions))]
}

// Short is an instance's id as people say it: 0000002a-000007 is 2a-7.
func Short(cid string) string {
	parts := strings.Split(cid, "-")
	for i, part := range parts {
		if trimmed := strings.TrimLeft(part, "0"); trimmed != "" {
			parts[i] = trimmed
		} else if part != "" {
			parts[i] = "0"
		}
	}
	return monitor.Printable(strings.Join(parts, "-"))
}
