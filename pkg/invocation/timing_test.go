package invocation_test

import (
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/windlass-dev/windlass/pkg/invocation"
)

func TestTiming(t *testing.T) {
	const ms = time.Millisecond
	warm := invocation.Timing{Queue: 3100 * time.Microsecond, Function: 12500 * time.Microsecond}
	cold := invocation.Timing{Queue: 200 * ms, Cold: true, Function: 11 * ms}
	for said, of := range map[string]invocation.Timing{
		"queue;dur=3.100, function;dur=12.500":          warm,
		"queue;dur=200.000, start, function;dur=11.000": cold,
	} {
		if got := of.String(); got != said {
			t.Errorf("%+v is %q, want %q", of, got, said)
		}
	}
	for name, tt := range map[string]struct {
		values []string
		want   invocation.Timing
		known  bool
	}{
		"the gateway's alone":           {[]string{warm.String()}, warm, true},
		"after the function's":          {[]string{"db;dur=53", cold.String()}, cold, true},
		"joined with the function's":    {[]string{`db;desc="a, b";dur=53, ` + warm.String()}, warm, true},
		"after a function's that poses": {[]string{cold.String(), warm.String()}, warm, true},
		"joined with one that poses":    {[]string{"start, function;dur=1, " + warm.String()}, warm, true},
		"none":                          {nil, invocation.Timing{}, false},
		"the function's alone":          {[]string{"db;dur=53"}, invocation.Timing{}, false},
		"without the function's time":   {[]string{"queue;dur=3"}, invocation.Timing{}, false},
		"a senseless time":              {[]string{"queue;dur=3, function;dur=NaN"}, invocation.Timing{}, false},
		"a time before its beginning":   {[]string{"queue;dur=-1, function;dur=1"}, invocation.Timing{}, false},
	} {
		if got, known := invocation.ParseTiming(tt.values); got != tt.want || known != tt.known {
			t.Errorf("%s: %+v, known %t", name, got, known)
		}
	}
}

func TestTimingIsReadAsItWasWritten(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		duration := rapid.Custom(func(t *rapid.T) time.Duration {
			return time.Duration(rapid.Int64Range(0, 1e9).Draw(t, "µs")) * time.Microsecond
		})
		want := invocation.Timing{Queue: duration.Draw(t, "queue"), Cold: rapid.Bool().Draw(t, "cold"), Function: duration.Draw(t, "function")}
		got, known := invocation.ParseTiming([]string{rapid.String().Draw(t, "the function's"), want.String()})
		off := max((got.Queue - want.Queue).Abs(), (got.Function - want.Function).Abs())
		if !known || got.Cold != want.Cold || off > time.Microsecond {
			t.Fatalf("%+v became %+v, known %t", want, got, known)
		}
	})
}
