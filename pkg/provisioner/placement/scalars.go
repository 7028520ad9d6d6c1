package placement

import (
	"maps"
	"slices"
	"strconv"
	"strings"
	"unique"
)

// Scalars is how much there is of further resources, such as ephemeral-storage and
// nvidia.com/gpu. Its zero value is nothing, which it nearly always is. Equal ones are
// the same value, so that amounts can be compared and be keys; an amount is copied for
// each node and each instance, so this is small and mostly left alone.
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

// Amounts are the amounts by name; nil if there are none.
func (f Scalars) Amounts() map[string]int64 {
	if !f.some() {
		return nil
	}
	amounts := make(map[string]int64)
	for part := range strings.SplitSeq(f.text.Value(), ",") {
		name, number, _ := strings.Cut(part, "=")
		// It is one that ScalarsOf has written.
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

// Equal says whether both are as much of each.
func (f Scalars) Equal(other Scalars) bool { return f == other }

// some says whether it is anything at all.
func (f Scalars) some() bool { return f != (Scalars{}) }

func (f Scalars) plus(other Scalars) Scalars { return f.add(other, 1) }

func (f Scalars) minus(other Scalars) Scalars { return f.add(other, -1) }

// add is f and times the other together.
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

// short is the first resource that does not cover want, and how much want has; "" if all
// do.
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
