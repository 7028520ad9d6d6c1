package callorder

import (
	"strings"
	"testing"
	"time"
)

func TestParamsAreRead(t *testing.T) {
	for _, o := range Orders() {
		if got, err := ParseOrder(string(o)); got != o || err != nil {
			t.Errorf("ParseOrder(%q) = %q, %v", o, got, err)
		}
	}
	for _, text := range []string{"off", "sfs", "p95", "auto", "50ms"} {
		if s, err := ParseSlice(text); err != nil || s.String() != text {
			t.Errorf("ParseSlice(%q) = %v, %v", text, s, err)
		}
	}
	if err := DefaultParams(2).Validate(); err != nil {
		t.Error(err)
	}
}

func TestWrongParamsAreNamed(t *testing.T) {
	if _, err := ParseOrder("lifo"); err == nil || !strings.Contains(err.Error(), `"lifo"`) || !strings.Contains(err.Error(), "serpt") {
		t.Errorf("ParseOrder: %v", err)
	}
	for text, says := range map[string]string{"-5ms": "more than 0", "0s": "more than 0", "fast": "auto, sfs, p95, off"} {
		if _, err := ParseSlice(text); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("ParseSlice(%q): %v; want %q", text, err, says)
		}
	}
	for says, change := range map[string]func(*Params){
		"call order":  func(p *Params) { p.Order = "lifo" },
		"slice":       func(p *Params) { p.Slice = Slice{Rule: SliceFixed, Length: -time.Second} },
		"cores is 0":  func(p *Params) { p.Cores = 0 },
		"aging":       func(p *Params) { p.Aging = 2 },
		"gain":        func(p *Params) { p.PreemptGain = 0.5 },
		"least":       func(p *Params) { p.PreemptLeast = -1 },
		"samples":     func(p *Params) { p.BlockedAfter = -1 },
		"bypass":      func(p *Params) { p.Bypass = -1 },
		"to remember": func(p *Params) { p.MaxFunctions = 0 },
	} {
		p := DefaultParams(2)
		change(&p)
		if _, err := New(p); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%s: %v", says, err)
		}
	}
}
