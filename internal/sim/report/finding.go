package report

import (
	"fmt"
	"strings"
)

// Finding is a figure that an experiment is for.
type Finding struct {
	// Name is in lower case with underscores; the report's own name leads it
	// when it is printed.
	Name  string  `json:"name"`
	Value float64 `json:"value"`
	// AtLeast and AtMost are the goal; nil for none.
	AtLeast *float64 `json:"atLeast,omitempty"`
	AtMost  *float64 `json:"atMost,omitempty"`
	// Beside is a figure to compare with, such as the paper's.
	Beside string `json:"beside,omitempty"`
}

// Found is a finding without a goal.
func Found(name string, value float64) Finding {
	// Names of algorithms have capitals, and those of findings have none.
	return Finding{Name: strings.ToLower(name), Value: value}
}

// Least is the finding with the goal to be at least a bound.
func (f Finding) Least(bound float64) Finding {
	f.AtLeast = &bound
	return f
}

// Most is the finding with the goal to be at most a bound.
func (f Finding) Most(bound float64) Finding {
	f.AtMost = &bound
	return f
}

// Compare is the finding with a figure to compare with.
func (f Finding) Compare(format string, args ...any) Finding {
	f.Beside = fmt.Sprintf(format, args...)
	return f
}

// Met reports whether the goal is reached; true without a goal.
func (f Finding) Met() bool {
	return (f.AtLeast == nil || f.Value >= *f.AtLeast) && (f.AtMost == nil || f.Value <= *f.AtMost)
}

// Goal describes the goal; empty without one.
func (f Finding) Goal() string {
	switch {
	case f.AtLeast != nil && f.AtMost != nil:
		return fmt.Sprintf(">= %s and <= %s", number(*f.AtLeast), number(*f.AtMost))
	case f.AtLeast != nil:
		return ">= " + number(*f.AtLeast)
	case f.AtMost != nil:
		return "<= " + number(*f.AtMost)
	}
	return ""
}
