package lint

import (
	"encoding/json"
	"fmt"
)

// Dashboard is what the rules look at of Grafana's format.
type Dashboard struct {
	UID         string   `json:"uid"`
	Title       string   `json:"title"`
	Description string   `json:"description"`
	Tags        []string `json:"tags"`
	Panels      []Panel  `json:"panels"`
	Templating  struct {
		List []Variable `json:"list"`
	} `json:"templating"`
	Links []Link `json:"links"`
}

// Variable is a choice at the top of a dashboard.
type Variable struct {
	Name       string     `json:"name"`
	Type       string     `json:"type"`
	Datasource Datasource `json:"datasource"`
}

// Panel is one picture. A row is a heading and has no query.
type Panel struct {
	ID          int        `json:"id"`
	Type        string     `json:"type"`
	Title       string     `json:"title"`
	Description string     `json:"description"`
	Datasource  Datasource `json:"datasource"`
	Position    Position   `json:"gridPos"`
	Targets     []Target   `json:"targets"`
	Interval    string     `json:"interval"`
	Links       []Link     `json:"links"`
	FieldConfig struct {
		Defaults struct {
			Unit  string `json:"unit"`
			Links []Link `json:"links"`
		} `json:"defaults"`
		Overrides []Override `json:"overrides"`
	} `json:"fieldConfig"`
	Options struct {
		// YAxis is where a heatmap has the unit of what its buckets hold.
		YAxis struct {
			Unit string `json:"unit"`
		} `json:"yAxis"`
	} `json:"options"`
	Transformations []struct {
		ID      string `json:"id"`
		Options struct {
			RenameByName map[string]string `json:"renameByName"`
		} `json:"options"`
	} `json:"transformations"`
}

// Position is a place on the grid, which is 24 columns wide.
type Position struct{ X, Y, W, H int }

// Target is one query of a panel.
type Target struct {
	RefID      string     `json:"refId"`
	Expr       string     `json:"expr"`
	Legend     string     `json:"legendFormat"`
	Instant    bool       `json:"instant"`
	Format     string     `json:"format"`
	Datasource Datasource `json:"datasource"`
}

// Datasource names where a query goes.
type Datasource struct {
	Type string `json:"type"`
	UID  string `json:"uid"`
}

// Link leads elsewhere.
type Link struct {
	Title string `json:"title"`
	URL   string `json:"url"`
}

// Override is what holds of some fields only.
type Override struct {
	Matcher struct {
		ID      string `json:"id"`
		Options any    `json:"options"`
	} `json:"matcher"`
	Properties []struct {
		ID    string          `json:"id"`
		Value json.RawMessage `json:"value"`
	} `json:"properties"`
}

// Parse reads a dashboard's JSON.
func Parse(text []byte) (Dashboard, error) {
	var d Dashboard
	if err := json.Unmarshal(text, &d); err != nil {
		return Dashboard{}, fmt.Errorf("reading a dashboard: %w", err)
	}
	return d, nil
}

// Charts are the panels that have queries.
func (d Dashboard) Charts() []Panel {
	var charts []Panel
	for _, p := range d.Panels {
		if p.Type != "row" {
			charts = append(charts, p)
		}
	}
	return charts
}

// has tells whether the dashboard has a variable.
func (d Dashboard) has(variable string) bool {
	for _, v := range d.Templating.List {
		if v.Name == variable {
			return true
		}
	}
	return false
}

// unit is what a field that is called name is shown in.
func (p Panel) unit(name string) string {
	for _, o := range p.FieldConfig.Overrides {
		if o.Matcher.ID != "byName" || o.Matcher.Options != name {
			continue
		}
		for _, property := range o.Properties {
			var unit string
			if property.ID == "unit" && json.Unmarshal(property.Value, &unit) == nil {
				return unit
			}
		}
	}
	if p.Type == "heatmap" {
		return p.Options.YAxis.Unit
	}
	return p.FieldConfig.Defaults.Unit
}

// units are all that the panel's fields are shown in.
func (p Panel) units() []string {
	units := []string{p.FieldConfig.Defaults.Unit}
	for _, o := range p.FieldConfig.Overrides {
		for _, property := range o.Properties {
			var unit string
			if property.ID == "unit" && json.Unmarshal(property.Value, &unit) == nil {
				units = append(units, unit)
			}
		}
	}
	return units
}

// field is what a target's values are called: by its legend, or in a table by its column.
func (p Panel) field(t Target) string {
	for _, transformation := range p.Transformations {
		if transformation.ID != "organize" {
			continue
		}
		for _, name := range []string{"Value #" + t.RefID, "Value"} {
			if column, ok := transformation.Options.RenameByName[name]; ok {
				return column
			}
		}
	}
	return t.Legend
}

// Finding is one thing that is wrong.
type Finding struct {
	Dashboard, Panel, Text string
}

// String names the place, then the fault.
func (f Finding) String() string {
	if f.Panel == "" {
		return f.Dashboard + ": " + f.Text
	}
	return f.Dashboard + ", " + f.Panel + ": " + f.Text
}
