package schedule

import (
	"errors"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
	_ "time/tzdata"

	"pgregory.net/rapid"
)

// calendar is a cron expression as the sets of numbers that its fields allow.
type calendar struct {
	minutes, hours, days, months, weekdays []int
}

func (c calendar) String() string {
	return strings.Join([]string{
		list(c.minutes), list(c.hours), list(c.days), list(c.months), list(c.weekdays),
	}, " ")
}

// list writes the numbers of a field; none stands for all.
func list(numbers []int) string {
	if len(numbers) == 0 {
		return "*"
	}
	var texts []string
	for _, n := range numbers {
		texts = append(texts, strconv.Itoa(n))
	}
	return strings.Join(texts, ",")
}

// shows tells whether clocks that show t, which is in UTC, show a start.
func (c calendar) shows(t time.Time) bool {
	in := func(numbers []int, n int) bool { return len(numbers) == 0 || slices.Contains(numbers, n) }
	day, weekday := in(c.days, t.Day()), in(c.weekdays, int(t.Weekday()))
	on := day && weekday
	if len(c.days) > 0 && len(c.weekdays) > 0 {
		on = day || weekday
	}
	return on && in(c.minutes, t.Minute()) && in(c.hours, t.Hour()) && in(c.months, int(t.Month()))
}

// begins tells whether a window begins in the minute t: if its clocks show a
// start, or have just been put forward past one.
func (c calendar) begins(t time.Time, zone *time.Location) bool {
	t = t.In(zone)
	if c.shows(shown(t)) {
		return true
	}
	for wall := shown(t.Add(-time.Minute)).Add(time.Minute); wall.Before(shown(t)); wall = wall.Add(time.Minute) {
		if c.shows(wall) {
			return true
		}
	}
	return false
}

// twin is a Window that is asked minute by minute.
type twin struct {
	calendar calendar
	zone     *time.Location
	minutes  int
	least    int
}

// start is that of the window; a calendar without any day will not do.
func (w twin) start(t *rapid.T) Start {
	s, err := ParseStart(w.calendar.String())
	if errors.Is(err, ErrNever) {
		t.Skip("no calendar has ", w.calendar)
	}
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// open tells of each of so many minutes whether the window is open, having looked
// at all before that in which it may have begun.
func (w twin) open(from time.Time, minutes int) []bool {
	all := make([]bool, 0, w.minutes+minutes)
	left := 0
	for i := range cap(all) {
		if left--; w.calendar.begins(from.Add(time.Duration(i-w.minutes)*time.Minute), w.zone) {
			left = w.minutes
		}
		all = append(all, left > 0)
	}
	return all[w.minutes:]
}

// change is a time at or near which the clocks of a zone change.
type change struct {
	zone string
	at   time.Time
}

// changes are by an hour, by half of one, at midnight, by a day, and none.
var changes = []change{
	{"Europe/Berlin", time.Date(2026, 3, 29, 1, 0, 0, 0, time.UTC)},
	{"Europe/Berlin", time.Date(2026, 10, 25, 1, 0, 0, 0, time.UTC)},
	{"America/St_Johns", time.Date(2026, 3, 8, 5, 30, 0, 0, time.UTC)},
	{"Australia/Lord_Howe", time.Date(2026, 4, 4, 15, 0, 0, 0, time.UTC)},
	{"Australia/Lord_Howe", time.Date(2026, 10, 3, 15, 30, 0, 0, time.UTC)},
	{"America/Sao_Paulo", time.Date(2018, 11, 4, 3, 0, 0, 0, time.UTC)},
	{"America/Sao_Paulo", time.Date(2018, 2, 18, 2, 0, 0, 0, time.UTC)},
	{"Pacific/Apia", time.Date(2011, 12, 30, 10, 0, 0, 0, time.UTC)},
	{"Asia/Kolkata", time.Date(2024, 2, 29, 12, 0, 0, 0, time.UTC)},
}

func drawTwin(t *rapid.T, name string, about change) twin {
	numbers := func(label string, least, most int, likely ...int) []int {
		number := rapid.OneOf(rapid.SampledFrom(append(likely, least)), rapid.IntRange(least, most))
		return rapid.SliceOfNDistinct(number, 0, 3, rapid.ID).Draw(t, name+label)
	}
	local := about.at.In(zone(t, about.zone))
	return twin{
		calendar: calendar{
			minutes:  numbers("minutes", 0, 59, 30, local.Minute()),
			hours:    numbers("hours", 0, 23, local.Hour(), (local.Hour()+23)%24),
			days:     numbers("days", 1, 31, local.Day()),
			months:   numbers("months", 1, 12, int(local.Month())),
			weekdays: numbers("weekdays", 0, 6, int(local.Weekday())),
		},
		zone:    local.Location(),
		minutes: rapid.OneOf(rapid.IntRange(1, 90), rapid.IntRange(1, 2*24*60)).Draw(t, name+"minutes"),
		least:   rapid.IntRange(1, 9).Draw(t, name+"least"),
	}
}

type fataler interface {
	Helper()
	Fatal(args ...any)
}

func zone(t fataler, name string) *time.Location {
	t.Helper()
	z, err := ParseTimeZone(name)
	if err != nil {
		t.Fatal(err)
	}
	return z
}

func start(t fataler, expression string) Start {
	t.Helper()
	s, err := ParseStart(expression)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestFloorIsThatOfTheSlowTwin(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		about := rapid.SampledFrom(changes).Draw(t, "change")
		var windows []Window
		var twins []twin
		for i := range rapid.IntRange(1, 3).Draw(t, "windows") {
			w := drawTwin(t, strconv.Itoa(i), about)
			twins = append(twins, w)
			windows = append(windows, Window{
				Start: w.start(t), Zone: w.zone,
				Duration: time.Duration(w.minutes) * time.Minute, Min: w.least,
			})
		}
		minutes := rapid.OneOf(rapid.IntRange(-120, 120), rapid.IntRange(-30*60, 30*60)).Draw(t, "minutes")
		now := about.at.Add(time.Duration(minutes) * time.Minute)
		const ahead = 24 * 60
		want := make([]int, ahead)
		for _, w := range twins {
			for i, open := range w.open(now, ahead) {
				if open {
					want[i] = max(want[i], w.least)
				}
			}
		}
		within := time.Duration(rapid.IntRange(0, 59_999).Draw(t, "milliseconds")) * time.Millisecond
		least, until := Floor(windows, now.Add(within))
		if !until.After(now.Add(within)) {
			t.Fatalf("at %v it is said to hold until %v", now, until)
		}
		for i := 0; i < ahead && now.Add(time.Duration(i)*time.Minute).Before(until); i++ {
			if least != want[i] {
				t.Fatalf("%d minutes after %v the least number is %d, though %d was to hold until %v", i, now, want[i], least, until)
			}
		}
	})
}
