package v1alpha1

import (
	"encoding/json"
	"strings"
	"testing"
	"time"
)

func TestADurationHasOneCanonicalWriting(t *testing.T) {
	for text, c := range map[string]struct {
		means   time.Duration
		written string
	}{
		"0s":                  {0, "0s"},
		"1500ms":              {1500 * time.Millisecond, "1s500ms"},
		"90m":                 {90 * time.Minute, "1h30m"},
		"60s":                 {time.Minute, "1m"},
		"1s1h1s":              {time.Hour + 2*time.Second, "1h2s"},
		"24h":                 {24 * time.Hour, "24h"},
		"00010m":              {10 * time.Minute, "10m"},
		"99999h59m59s999ms":   {99_999*time.Hour + time.Hour - time.Millisecond, "99999h59m59s999ms"},
		"99999ms99999s00001s": {99_999*time.Millisecond + 100_000*time.Second, "27h48m19s999ms"},
	} {
		d, err := ParseDuration(text)
		if err != nil || d.Duration != c.means || d.String() != c.written {
			t.Errorf("%s is %v, written %s, want %v, written %s (%v)", text, d.Duration, d, c.means, c.written, err)
		}
		asJSON, err := json.Marshal(d)
		var back Duration
		if err != nil || json.Unmarshal(asJSON, &back) != nil || back != d || string(asJSON) != `"`+c.written+`"` {
			t.Errorf("%s became %s and then %v (%v)", text, asJSON, back.Duration, err)
		}
	}
}

func TestADurationIsNothingElse(t *testing.T) {
	for _, text := range []string{"", "1", "-1s", "+1s", "1.5h", "1us", "1ns", "1µs", "1d", "1 s", "100000h", "1h1m1s1ms1h", "h", "1s\n"} {
		if d, err := ParseDuration(text); err == nil {
			t.Errorf("%q is %v", text, d)
		}
		asJSON, _ := json.Marshal(text)
		var d Duration
		if err := json.Unmarshal(asJSON, &d); err == nil || !strings.Contains(err.Error(), "such as 1") {
			t.Errorf("%q is read as %v (%v)", text, d, err)
		}
	}
	for _, d := range []time.Duration{-time.Second, 100_000 * time.Hour} {
		if text, err := json.Marshal(Duration{d}); err == nil {
			t.Errorf("%v is written as %s", d, text)
		}
	}
}

func FuzzADurationThatIsReadIsReadAgain(f *testing.F) {
	for _, seed := range []string{"1h30m", "250ms", "99999h99999h99999h99999h", "0s"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		d, err := ParseDuration(text)
		if err != nil {
			return
		}
		if d.Duration < 0 {
			t.Fatalf("%s is %v", text, d.Duration)
		}
		if d.Hours() >= 100_000 {
			return // four numbers may say together what one cannot
		}
		if again, err := ParseDuration(d.String()); err != nil || again != d {
			t.Errorf("%s is written %s, which is %v (%v)", text, d, again.Duration, err)
		}
	})
}
