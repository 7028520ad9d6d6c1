package estimate

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"
)

const (
	// MaxUnits is the maximum number of units in a Record. With UIDs of Kubernetes it is at
	// most 48 KiB as JSON.
	MaxUnits = 256
	// tolerance is the fraction, 1/tolerance, by which a mean must change to be written again.
	// A mean of ten observations always moves by a few percent, and a reader counts it as one
	// observation only.
	tolerance = 10
)

// Unit has the means of one unit, which is a revision of a function.
type Unit struct {
	// UID is the unit's, and Function that of its function.
	UID      string `json:"uid"`
	Function string `json:"function"`
	// Revision is as in Function.Revision: of two, the later one is greater.
	Revision  string        `json:"revision"`
	Execution time.Duration `json:"executionNs,omitempty"`
	Start     time.Duration `json:"startNs,omitempty"`
}

// Means are the unit's.
func (u *Unit) Means() Means { return Means{Execution: u.Execution, Start: u.Start} }

// Record has the means of some units, in the order of their UIDs.
type Record []Unit

// RecordOf makes a Record of units. It leaves out units without means, and of more than
// MaxUnits it keeps those whose UIDs come first.
func RecordOf(units []Unit) Record {
	known := slices.DeleteFunc(slices.Clone(units), func(u Unit) bool { return u.Means() == Means{} })
	slices.SortFunc(known, func(a, b Unit) int { return strings.Compare(a.UID, b.UID) })
	return known[:min(len(known), MaxUnits)]
}

// Differs reports whether to replace the stored Record: a unit was added or removed, or one of
// its means has changed by more than a tenth.
func (r Record) Differs(kept Record) bool {
	return !slices.EqualFunc(r, kept, func(now, before Unit) bool {
		return now.UID == before.UID && now.Function == before.Function && now.Revision == before.Revision &&
			about(now.Execution, before.Execution) && about(now.Start, before.Start)
	})
}

func about(now, before time.Duration) bool {
	return (now == 0) == (before == 0) && (now-before).Abs() <= before/tolerance
}

// Encode is the inverse of ParseRecord.
func (r Record) Encode() []byte {
	// Structs of strings and numbers always encode.
	text, _ := json.Marshal(r)
	return text
}

// ParseRecord is the inverse of Encode. It drops negative means.
func ParseRecord(text []byte) (Record, error) {
	var units []Unit
	if err := json.Unmarshal(text, &units); err != nil {
		return nil, fmt.Errorf("estimate: a record that is none: %w", err)
	}
	for i := range units {
		units[i].Execution, units[i].Start = max(0, units[i].Execution), max(0, units[i].Start)
	}
	return RecordOf(units), nil
}

// Restore returns the means of the unit with that UID. If it has none, it returns those of the
// latest revision that has some, since a new revision resembles the one before.
func Restore(units []Unit, uid string) Means {
	order := slices.SortedFunc(slices.Values(units), func(a, b Unit) int {
		if (a.UID == uid) != (b.UID == uid) {
			return cmp.Compare(matchRank(b.UID == uid), matchRank(a.UID == uid))
		}
		return strings.Compare(b.Revision, a.Revision)
	})
	var m Means
	for _, u := range order {
		m.Execution, m.Start = cmp.Or(m.Execution, u.Execution), cmp.Or(m.Start, u.Start)
	}
	return m
}

func matchRank(yes bool) int {
	if yes {
		return 1
	}
	return 0
}
