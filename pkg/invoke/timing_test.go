package invoke_test

import (
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/windlass-dev/windlass/pkg/invoke"
)

func TestTiming(t *testing.T) {
	const ms = time.Millisecond
	warm := invoke.Timing{Queue: 3100 * time.Microsecond, Function: 12500 * time.Microsecond}
	cold := invoke.Timing{Queue: 200 * ms, Cold: true, Function: 11 * ms}
	for said, of := range map[string]invoke.Timing{
		"queue;dur=3.100, function;dur=12.500":          warm,
		"queue;dur=200.000, start, function;dur=11.000": cold,
	} {
		if got := of.String(); got != said {
			t.Errorf("%+v is %q, want %q", of, got, said)
		}
	}
	for name, tt := range map[string]struct {
		values []string
		want   invoke.Timing
		known  bool
	}{
		"the gateway's alone":           {[]string{warm.String()}, warm, true},
		"after the function's":          {[]string{"db;dur=53", cold.String()}, cold, true},
		"joined with the function's":    {[]string{`db;desc="a, b";dur=53, ` + warm.String()}, warm, true},
		"after a function's that poses": {[]string{cold.String(), warm.String()}, warm, true},
		"joined with one that poses":    {[]string{"start, function;dur=1, " + warm.String()}, warm, true},
		"none":                          {nil, invoke.Timing{}, false},
		"the function's alone":          {[]string{"db;dur=53"}, invoke.Timing{}, false},
		"without the function's time":   {[]string{"queue;dur=3"}, invoke.Timing{}, false},
		"a senseless time":              {[]string{"queue;dur=3, function;dur=NaN"}, invoke.Timing{}, false},
		"a time before its beginning":   {[]string{"queue;dur=-1, function;dur=1"}, invoke.Timing{}, false},
	} {
		if got, known := invoke.ParseTiming(tt.values); got != tt.want || known != tt.known {
			t.Errorf("%s: %+v, known %t", name, got, known)
		}
	}
}

func TestTimingIsReadAsItWasWritten(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		duration := rapid.Custom(func(t *rapid.T) time.Duration {
			return time.Duration(rapid.Int64Range(0, 1e9).Draw(t, "µs")) * time.Microsecond
		})
		want := invoke.Timing{Queue: duration.Draw(t, "queue"), Cold: rapid.Bool().Draw(t, "cold"), Function: duration.Draw(t, "function")}
		got, known := invoke.ParseTiming([]string{rapid.String().Draw(t, "the function's"), want.String()})
		off := max((got.Queue - want.Queue).Abs(), (got.Function - want.Function).Abs())
		if !known || got.Cold != want.Cold || off > time.Microsecond {
			t.Fatalf("%+v became %+v, known %t", want, got, known)
		}
	})
}
