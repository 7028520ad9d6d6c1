package schedule

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/robfig/cron/v3"
)

// Start is when a window begins: a cron expression that ParseStart has read.
type Start struct {
	walls cron.Schedule
}

// fields reads what Kubernetes' CronJobs take, without the names such as @daily:
// a window has a start that says when, and a zone in a field of its own.
var fields = cron.NewParser(cron.Minute | cron.Hour | cron.Dom | cron.Month | cron.Dow)

// ErrNever says that a start is well-formed but occurs in no calendar, like the 30th of
// February.
var ErrNever = errors.New("it never comes")

// ParseStart reads five fields of cron: minute, hour, day of month, month, day of week. The
// error names the invalid field; it is ErrNever if the fields are valid but never match.
func ParseStart(expression string) (Start, error) {
	if n := len(strings.Fields(expression)); n != 5 {
		return Start{}, fmt.Errorf("it has %d instead of 5", n)
	}
	if strings.Contains(expression, "TZ=") {
		return Start{}, errors.New("the time zone has a field of its own")
	}
	walls, err := fields.Parse(expression)
	if err != nil {
		return Start{}, err
	}
	// The five years that the library looks ahead hold each day of the calendar.
	if walls.Next(time.Date(2001, 1, 1, 0, 0, 0, 0, time.UTC)).IsZero() {
		return Start{}, ErrNever
	}
	return Start{walls}, nil
}

// ParseTimeZone finds a zone of the IANA database, of the machine or else of the program; the
// empty name is UTC.
func ParseTimeZone(name string) (*time.Location, error) {
	if name == "Local" {
		return nil, errors.New("it differs from machine to machine")
	}
	return time.LoadLocation(name)
}

// nextStart is the first start after t in a zone, or zero if none is near enough
// for the library, which looks ahead five years.
//
// The library is only asked about clocks that are never changed, for it leaves
// out what others skip. Their changes are dealt with here.
func (s Start) nextStart(t time.Time, zone *time.Location) time.Time {
	t = t.In(zone)
	after := shown(t)
	for {
		wall := s.walls.Next(after)
		if wall.IsZero() {
			return time.Time{}
		}
		_, offset := t.Zone()
		start := wall.Add(-time.Duration(offset) * time.Second)
		_, change := t.ZoneBounds()
		switch {
		case change.IsZero() || start.Before(change):
			return start
		case wall.Before(shown(change)):
			return change
		}
		t, after = change, shown(change).Add(-time.Second)
	}
}

// shown is what clocks show at t, as if it were UTC.
func shown(t time.Time) time.Time {
	_, offset := t.Zone()
	return t.UTC().Add(time.Duration(offset) * time.Second)
}
