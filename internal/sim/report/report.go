package report

import (
	"encoding/json"
	"fmt"
	"io"
)

// Report is what an experiment found.
type Report struct {
	// Name is the experiment's name, and Title its subject in a line.
	Name  string `json:"name"`
	Title string `json:"title"`
	// Seed is the first of Seeds seeds, and Scale the factor on what the
	// experiment's calls or time are at full size.
	Seed  uint64  `json:"seed"`
	Seeds int     `json:"seeds"`
	Scale float64 `json:"scale"`
	// Parameters are the assumptions with their sources.
	Parameters []Parameter `json:"parameters"`
	// Findings are the figures that the experiment is for.
	Findings []Finding `json:"findings"`
	Tables   []Table   `json:"tables"`
	Charts   []Chart   `json:"charts"`
	// Notes say in sentences what the model leaves out and where our results are worse.
	Notes []string `json:"notes"`
}

// Parameter is one assumption.
type Parameter struct {
	Name  string `json:"name"`
	Value string `json:"value"`
	// Source says where the value is from.
	Source string `json:"source"`
}

// WriteJSON writes the report as an indented object.
func (r Report) WriteJSON(w io.Writer) error {
	text, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return fmt.Errorf("report %s: %w", r.Name, err)
	}
	_, err = fmt.Fprintf(w, "%s\n", text)
	return err
}

// ReadJSON reads the reports that WriteJSON wrote, one after the other.
func ReadJSON(r io.Reader) ([]Report, error) {
	var reports []Report
	for decoder := json.NewDecoder(r); ; {
		var next Report
		err := decoder.Decode(&next)
		if err == io.EOF {
			return reports, nil
		}
		if err != nil {
			return nil, fmt.Errorf("report %d of the input is not one that was written as JSON: %w", len(reports)+1, err)
		}
		reports = append(reports, next)
	}
}
