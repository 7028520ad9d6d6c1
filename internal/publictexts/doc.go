// Package publictexts gathers the texts of the product that people read outside its
// documentation: the help of metrics and commands, alerts, dashboards, conditions, Events,
// problems, chart values and the fields of the API. "make words" prints them on one page, and
// internal/doccheck rejects phrases that readers have to read twice.
//
// It has no list of its own. It reads the declaration of each text, or the page or CRD that "make
// generate" makes of it.
package publictexts
