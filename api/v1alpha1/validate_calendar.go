package v1alpha1

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/windlass-dev/windlass/internal/schedule"
)

// Bounds of a ScheduleWindow, inclusive.
const (
	MaxWindows = 16
	MinWindow  = time.Minute
	MaxWindow  = 7 * 24 * time.Hour
)

// Calendar is the windows, without any that Validate refuses.
func (s *Scaling) Calendar() []schedule.Window {
	windows := make([]schedule.Window, 0, len(s.Windows))
	for _, w := range s.Windows {
		start, err := schedule.ParseStart(w.Start)
		if err != nil {
			continue
		}
		zone, err := schedule.ParseTimeZone(w.TimeZone)
		if err != nil {
			continue
		}
		windows = append(windows, schedule.Window{Start: start, Zone: zone, Duration: w.Duration.Duration, Min: int(w.MinInstances)})
	}
	return windows
}

func validateWindows(scaling *field.Path, s *Scaling) field.ErrorList {
	var errs field.ErrorList
	at := scaling.Child("windows")
	if n := len(s.Windows); n > MaxWindows {
		errs = append(errs, field.Invalid(at, fmt.Sprintf("%d windows", n),
			fmt.Sprintf("must be at most %d; join some, for example as 0 8,20 * * *", MaxWindows)))
	}
	seen := sets.New[string]()
	for i := range s.Windows {
		name := s.Windows[i].Name
		errs = append(errs, validateLabel(at.Index(i).Child("name"), name, "office-hours")...)
		if seen.Has(name) {
			errs = append(errs, field.Invalid(at.Index(i).Child("name"), name, "occurs twice; remove one of the two or rename it"))
		}
		seen.Insert(name)
		errs = append(errs, validateWindow(at.Index(i), &s.Windows[i])...)
		least := at.Index(i).Child("minInstances")
		switch n := s.Windows[i].MinInstances; {
		case n < 1 || n > MaxInstances:
			errs = append(errs, field.Invalid(least, n,
				fmt.Sprintf("must be 1 to %d; write for example 5, or remove the window", MaxInstances)))
		case s.MaxInstances != nil && *s.MaxInstances >= 1 && n > *s.MaxInstances:
			errs = append(errs, field.Invalid(least, n,
				fmt.Sprintf("must not be more than maxInstances; lower it to %d, or raise %s", *s.MaxInstances, scaling.Child("maxInstances"))))
		}
	}
	return errs
}

const (
	startRule    = "must be five fields of cron: minute, hour, day of month, month, day of week"
	exampleStart = "0 8 * * 1-5"
)

func validateWindow(at *field.Path, w *ScalingWindow) field.ErrorList {
	var errs field.ErrorList
	if w.Start == "" {
		errs = append(errs, field.Required(at.Child("start"), fmt.Sprintf("%s; write for example start: %q", startRule, exampleStart)))
	} else if _, err := schedule.ParseStart(w.Start); err != nil {
		errs = append(errs, field.Invalid(at.Child("start"), w.Start, wrongStart(w.Start, err)))
	}
	if _, err := schedule.ParseTimeZone(w.TimeZone); err != nil {
		errs = append(errs, field.Invalid(at.Child("timeZone"), w.TimeZone,
			"must be a name of the IANA time zone database; write for example Europe/Berlin, or remove timeZone for UTC"))
	}
	return append(errs, validateDuration(at.Child("duration"), w.Duration, MinWindow, MaxWindow)...)
}

// wrongStart says what is wrong with the start of a window and, where it can be
// told what was meant, what to write instead.
func wrongStart(start string, err error) string {
	words := strings.Fields(start)
	if zone, prefixed := zonePrefix(words); prefixed {
		return fmt.Sprintf("must not name a time zone; write start: %q and timeZone: %s",
			strings.Join(words[1:], " "), zone)
	}
	if errors.Is(err, schedule.ErrNever) {
		return "must be a time that occurs; write for example " + exampleStart
	}
	return fmt.Sprintf("%s (%v); write for example %s", startRule, err, meantStart(words))
}

func zonePrefix(words []string) (zone string, ok bool) {
	for _, prefix := range []string{"CRON_TZ=", "TZ="} {
		if len(words) > 1 && strings.HasPrefix(words[0], prefix) {
			return words[0][len(prefix):], true
		}
	}
	return "", false
}

// meantStart is what someone who wrote one of cron's names, or seconds as well,
// may have meant, or else an example.
func meantStart(words []string) string {
	named := map[string]string{
		"@hourly": "0 * * * *", "@daily": "0 0 * * *", "@midnight": "0 0 * * *",
		"@weekly": "0 0 * * 0", "@monthly": "0 0 1 * *", "@yearly": "0 0 1 1 *", "@annually": "0 0 1 1 *",
	}
	switch {
	case len(words) == 1 && named[words[0]] != "":
		return named[words[0]]
	case len(words) == 6:
		if meant := strings.Join(words[1:], " "); parses(meant) {
			return meant
		}
	}
	return exampleStart
}

func parses(start string) bool {
	_, err := schedule.ParseStart(start)
	return err == nil
}
