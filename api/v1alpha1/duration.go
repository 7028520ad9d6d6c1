package v1alpha1

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// Duration is a length of time, written as in the APIs of Kubernetes' SIG Network
// (GEP-2257): one to four numbers of at most five digits, each with the unit h, m, s
// or ms, such as 90s, 1h30m or 250ms. There are no fractions, no signs, and nothing
// shorter than a millisecond.
//
// +kubebuilder:validation:Type=string
// +kubebuilder:validation:MaxLength=28
type Duration struct {
	time.Duration `json:"-"`
}

var (
	durationPattern = regexp.MustCompile(`^([0-9]{1,5}(h|m|s|ms)){1,4}$`)
	durationPart    = regexp.MustCompile(`([0-9]+)(ms|h|m|s)`)
)

var units = []struct {
	name string
	is   time.Duration
}{{"h", time.Hour}, {"m", time.Minute}, {"s", time.Second}, {"ms", time.Millisecond}}

// ParseDuration reads a Duration. Its error says what one looks like.
func ParseDuration(s string) (Duration, error) {
	if positive, negative := strings.CutPrefix(s, "-"); negative && durationPattern.MatchString(positive) {
		return Duration{}, fmt.Errorf("%q is negative; it must be positive, such as %s", s, positive)
	}
	if !durationPattern.MatchString(s) {
		return Duration{}, fmt.Errorf("%q is not a duration; write whole numbers with the units h, m, s and ms, such as 1h30m or 250ms", s)
	}
	var sum time.Duration
	for _, part := range durationPart.FindAllStringSubmatch(s, -1) {
		n, _ := strconv.ParseInt(part[1], 10, 64)
		for _, unit := range units {
			if unit.name == part[2] {
				sum += time.Duration(n) * unit.is
			}
		}
	}
	return Duration{sum}, nil
}

// String is the one canonical way to write d: units from h to ms, each once and
// below the next larger one, and none that is zero, as in 1h30m; zero is 0s. It drops
// what is below a millisecond.
func (d Duration) String() string {
	rest := d.Duration
	if rest < 0 {
		return "-" + Duration{-rest}.String()
	}
	var b strings.Builder
	for _, unit := range units {
		if n := rest / unit.is; n > 0 {
			b.WriteString(strconv.FormatInt(int64(n), 10) + unit.name)
			rest -= n * unit.is
		}
	}
	if b.Len() == 0 {
		return "0s"
	}
	return b.String()
}

// MarshalJSON writes d as String does. It fails for a duration that no manifest can
// say: one below zero, or above 99999 hours.
func (d Duration) MarshalJSON() ([]byte, error) {
	s := d.String()
	if !durationPattern.MatchString(s) {
		return nil, fmt.Errorf("the duration %s cannot be written", d.Duration)
	}
	return json.Marshal(s)
}

// UnmarshalJSON reads what ParseDuration reads.
func (d *Duration) UnmarshalJSON(data []byte) error {
	var s *string
	err := json.Unmarshal(data, &s)
	if err != nil || s == nil {
		return err
	}
	*d, err = ParseDuration(*s)
	return err
}

// ToUnstructured is how runtime.DefaultUnstructuredConverter writes d.
func (d Duration) ToUnstructured() any { return d.String() }
