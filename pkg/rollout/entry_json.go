package rollout

import (
	"encoding/json"
	"errors"
	"reflect"
	"slices"

	"github.com/windlass-dev/windlass/api/v1alpha1"
)

// entryJSON is an Entry as JSON. It says once what a unit has alike with its function.
type entryJSON struct {
	Function *v1alpha1.Function `json:"f"`
	Units    []unitJSON         `json:"u,omitempty"`
	Routes   []routeJSON        `json:"r,omitempty"`
}

// unitJSON is a unit without the parts that are those of its function.
type unitJSON struct {
	// Unit is nil if it is the function itself.
	Unit *v1alpha1.Function `json:"u,omitempty"`
	// SameTemplate and SameLabels say that the function's are the unit's.
	SameTemplate bool `json:"t,omitempty"`
	SameLabels   bool `json:"l,omitempty"`
}

type routeJSON struct {
	Tag    string `json:"t,omitempty"`
	Weight int32  `json:"w,omitempty"`
	// Unit is its index.
	Unit int `json:"u,omitempty"`
}

var errStrangeUnit = errors.New("rollout: a route leads to no unit of its entry")

// MarshalJSON implements json.Marshaler.
func (e *Entry) MarshalJSON() ([]byte, error) {
	written := entryJSON{Function: e.Function}
	for _, unit := range e.Units {
		written.Units = append(written.Units, e.withoutShared(unit))
	}
	for _, route := range e.Routes {
		at := slices.Index(e.Units, route.Unit)
		if at < 0 {
			return nil, errStrangeUnit
		}
		written.Routes = append(written.Routes, routeJSON{Tag: route.Tag, Weight: route.Weight, Unit: at})
	}
	return json.Marshal(written)
}

func (e *Entry) withoutShared(unit *v1alpha1.Function) unitJSON {
	if unit == e.Function {
		return unitJSON{}
	}
	u := *unit
	w := unitJSON{
		Unit:         &u,
		SameTemplate: reflect.DeepEqual(u.Spec.Template, e.Function.Spec.Template),
		SameLabels:   reflect.DeepEqual(u.Labels, e.Function.Labels),
	}
	if w.SameTemplate {
		u.Spec.Template = v1alpha1.FunctionTemplate{}
	}
	if w.SameLabels {
		u.Labels = nil
	}
	return w
}

// UnmarshalJSON implements json.Unmarshaler. Units share with their function what they shared.
func (e *Entry) UnmarshalJSON(text []byte) error {
	var read entryJSON
	if err := json.Unmarshal(text, &read); err != nil {
		return err
	}
	*e = Entry{Function: read.Function}
	for _, r := range read.Units {
		unit := r.Unit
		if unit == nil {
			unit = e.Function
		}
		if r.SameTemplate {
			unit.Spec.Template = e.Function.Spec.Template
		}
		if r.SameLabels {
			unit.Labels = e.Function.Labels
		}
		e.Units = append(e.Units, unit)
	}
	for _, r := range read.Routes {
		if r.Unit < 0 || r.Unit >= len(e.Units) {
			return errStrangeUnit
		}
		e.Routes = append(e.Routes, Route{Tag: r.Tag, Weight: r.Weight, Unit: e.Units[r.Unit]})
	}
	return nil
}
