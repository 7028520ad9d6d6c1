package schedule

import (
	"errors"
	"testing"
	"time"
)

func at(t *testing.T, text string) time.Time {
	t.Helper()
	when, err := time.Parse(time.RFC3339, text)
	if err != nil {
		t.Fatal(err)
	}
	return when
}

func TestFloor(t *testing.T) {
	berlin := zone(t, "Europe/Berlin")
	office := Window{Start: start(t, "0 8 * * 1-5"), Zone: berlin, Duration: 10 * time.Hour, Min: 5}
	lunch := Window{Start: start(t, "0 12 * * *"), Zone: berlin, Duration: time.Hour, Min: 20}
	night := Window{Start: start(t, "30 2 * * *"), Zone: berlin, Duration: 30 * time.Minute, Min: 3}
	always := Window{Start: start(t, "0 0 * * *"), Zone: time.UTC, Duration: 36 * time.Hour, Min: 2}
	leap := Window{Start: start(t, "0 0 29 2 *"), Zone: time.UTC, Duration: time.Hour, Min: 1}
	for name, c := range map[string]struct {
		windows []Window
		now     string
		least   int
		until   string
	}{
		"before it begins":                {[]Window{office}, "2026-11-20T06:59:59Z", 0, "2026-11-20T07:00:00Z"},
		"as it begins":                    {[]Window{office}, "2026-11-20T07:00:00Z", 5, "2026-11-20T17:00:00Z"},
		"as it ends, before a weekend":    {[]Window{office}, "2026-11-20T17:00:00Z", 0, "2026-11-23T07:00:00Z"},
		"the highest of two":              {[]Window{office, lunch}, "2026-11-20T11:00:00Z", 20, "2026-11-20T12:00:00Z"},
		"after the highest":               {[]Window{lunch, office}, "2026-11-20T12:00:00Z", 5, "2026-11-20T17:00:00Z"},
		"in summer":                       {[]Window{office}, "2026-07-20T06:00:00Z", 5, "2026-07-20T16:00:00Z"},
		"the clocks are put forward past": {[]Window{night}, "2026-03-29T00:59:59Z", 0, "2026-03-29T01:00:00Z"},
		"it begins as they are":           {[]Window{night}, "2026-03-29T01:00:00Z", 3, "2026-03-29T01:30:00Z"},
		"the clocks show it":              {[]Window{night}, "2026-10-25T00:30:00Z", 3, "2026-10-25T01:00:00Z"},
		"between":                         {[]Window{night}, "2026-10-25T01:00:00Z", 0, "2026-10-25T01:30:00Z"},
		"they show it again":              {[]Window{night}, "2026-10-25T01:30:00Z", 3, "2026-10-25T02:00:00Z"},
		"longer than the time between":    {[]Window{always}, "2026-11-20T13:00:00Z", 2, "2026-11-22T12:00:00Z"},
		"a start that is years away":      {[]Window{leap}, "2026-11-20T13:00:00Z", 0, "2028-02-29T00:00:00Z"},
		"a start that is too far away":    {[]Window{leap}, "2096-03-01T00:00:00Z", 0, "2097-03-01T00:00:00Z"},
	} {
		t.Run(name, func(t *testing.T) {
			least, until := Floor(c.windows, at(t, c.now))
			if want := at(t, c.until); least != c.least || !until.Equal(want) {
				t.Errorf("got %d until %v, want %d until %v", least, until, c.least, want)
			}
		})
	}
	if least, until := Floor(nil, at(t, "2026-11-20T13:00:00Z")); least != 0 || !until.IsZero() {
		t.Errorf("without windows there are %d until %v", least, until)
	}
}

// TestFloorIsAskedSeldom counts how often someone asks who asks when told to.
func TestFloorIsAskedSeldom(t *testing.T) {
	for expression, duration := range map[string]time.Duration{
		"* * * * *":    7 * 24 * time.Hour,
		"*/5 * * * *":  10 * time.Minute,
		"0 8 * * 1-5":  10 * time.Hour,
		"0 0,12 * * *": 12 * time.Hour,
	} {
		windows := []Window{{Start: start(t, expression), Zone: zone(t, "Europe/Berlin"), Duration: duration, Min: 1}}
		asked := 0
		for now, end := at(t, "2026-10-01T00:00:00Z"), at(t, "2026-11-01T00:00:00Z"); now.Before(end); asked++ {
			_, now = Floor(windows, now)
		}
		// Once for each duration that passes, and for each begin and end.
		if most := 2*31 + int(31*24*time.Hour/duration); asked > most {
			t.Errorf("%s is asked %d times a month, more than %d", expression, asked, most)
		}
	}
}

func TestParseStartRefuses(t *testing.T) {
	for _, expression := range []string{"", "@daily", "@every 1h", "0 8 * *", "0 0 8 * * *", "TZ=UTC 8 * * *", "TZ=UTC 0 8 * * *",
		"0 8 * * 7", "60 8 * * *", "0 24 * * *", "0 8 0 * *", "0 8 * 13 *", "x 8 * * *", "*/0 * * * *", "0 8-6 * * *", "-1 8 * * *"} {
		if _, err := ParseStart(expression); err == nil || errors.Is(err, ErrNever) {
			t.Errorf("%q: %v", expression, err)
		}
	}
	for _, expression := range []string{"0 8 30 2 *", "0 8 31 4,6,9,11 *", ", 8 * * *"} {
		if _, err := ParseStart(expression); !errors.Is(err, ErrNever) {
			t.Errorf("%q: %v", expression, err)
		}
	}
}

func TestParseTimeZone(t *testing.T) {
	for _, name := range []string{"", "UTC", "Europe/Berlin", "Etc/GMT+5"} {
		if _, err := ParseTimeZone(name); err != nil {
			t.Errorf("%q: %v", name, err)
		}
	}
	for _, name := range []string{"Local", "Berlin", "../UTC", "/usr/share/zoneinfo/UTC", "CET/"} {
		if _, err := ParseTimeZone(name); err == nil {
			t.Errorf("%q is taken", name)
		}
	}
}

func FuzzParseStart(f *testing.F) {
	for _, seed := range []string{"0 8 * * 1-5", "TZ=", "TZ=x y", "CRON_TZ=UTC 0 8 * *", "*/9223372036854775807 * * * *", ", , , , ,", "? ? ? ? ?"} {
		f.Add(seed)
	}
	now := time.Date(2026, 11, 21, 0, 0, 0, 0, time.UTC)
	f.Fuzz(func(t *testing.T, expression string) {
		s, err := ParseStart(expression)
		if err != nil {
			return
		}
		w := Window{Start: s, Zone: time.UTC, Duration: time.Hour, Min: 1}
		if _, until := Floor([]Window{w}, now); !until.After(now) {
			t.Errorf("%q holds until %v", expression, until)
		}
	})
}

func BenchmarkFloor(b *testing.B) {
	windows := []Window{{Start: start(b, "0 8 * * 1-5"), Zone: zone(b, "Europe/Berlin"), Duration: 10 * time.Hour, Min: 5}}
	now := time.Date(2026, 11, 21, 0, 0, 0, 0, time.UTC)
	for b.Loop() {
		Floor(windows, now)
	}
}
