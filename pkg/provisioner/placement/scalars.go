package placement

import (
	"maps"
	"slices"
	"strconv"
	"strings"
	"unique"
)

// Scalars are amounts of further resources, such as ephemeral-storage and nvidia.com/gpu. The
// zero value is empty, which it nearly always is. Equal amounts are equal values, so that they
// can be compared and be keys. Scalars are copied for each node and each instance, so they are
// small.
type Scalars struct {
	// text are names and whole numbers other than 0, in the order of the names.
	text unique.Handle[string]
}

// ScalarsOf makes one of amounts by name. Names have neither commas nor equals signs.
func ScalarsOf(amounts map[string]int64) Scalars {
	var text strings.Builder
	for _, name := range slices.Sorted(maps.Keys(amounts)) {
		if n := amounts[name]; n != 0 {
			if text.Len() > 0 {
				text.WriteByte(',')
			}
			text.WriteString(name)
			text.WriteByte('=')
			text.WriteString(strconv.FormatInt(n, 10))
		}
	}
	if text.Len() == 0 {
		return Scalars{}
	}
	return Scalars{unique.Make(text.String())}
}

// Amounts are the amounts by name; nil if empty.
func (f Scalars) Amounts() map[string]int64 {
	if !f.some() {
		return nil
	}
	amounts := make(map[string]int64)
	for part := range strings.SplitSeq(f.text.Value(), ",") {
		name, number, _ := strings.Cut(part, "=")
		// ScalarsOf has written it.
		amounts[name], _ = strconv.ParseInt(number, 10, 64)
	}
	return amounts
}

// String is the amounts as "ephemeral-storage=1048576,nvidia.com/gpu=1".
func (f Scalars) String() string {
	if !f.some() {
		return ""
	}
	return f.text.Value()
}

// Equal reports whether both have the same amounts.
func (f Scalars) Equal(other Scalars) bool { return f == other }

// some reports whether any amount is not 0.
func (f Scalars) some() bool { return f != (Scalars{}) }

func (f Scalars) plus(other Scalars) Scalars { return f.add(other, 1) }

func (f Scalars) minus(other Scalars) Scalars { return f.add(other, -1) }

// add is f plus times the other.
func (f Scalars) add(other Scalars, times int64) Scalars {
	if !other.some() {
		return f
	}
	sum := f.Amounts()
	if sum == nil {
		sum = make(map[string]int64)
	}
	for name, n := range other.Amounts() {
		sum[name] += times * n
	}
	return ScalarsOf(sum)
}

// positive is f without amounts below 0.
func (f Scalars) positive() Scalars {
	amounts := f.Amounts()
	maps.DeleteFunc(amounts, func(_ string, n int64) bool { return n < 0 })
	return ScalarsOf(amounts)
}

// short is the first resource that does not cover want, and how much want asks for; "" if all
// cover it.
func (f Scalars) short(want Scalars) (name string, wanted int64) {
	have, need := f.Amounts(), want.Amounts()
	for _, name := range slices.Sorted(maps.Keys(need)) {
		if need[name] > have[name] {
			return name, need[name]
		}
	}
	return "", 0
}

// times is how often want fits into f, at most most times.
func (f Scalars) times(want Scalars, most int64) int64 {
	have := f.Amounts()
	for name, n := range want.Amounts() {
		if n > 0 {
			most = min(most, max(0, have[name])/n)
		}
	}
	return most
}
