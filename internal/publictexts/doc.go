// Package publictexts gathers what people read of the product outside its documentation:
// the help of metrics and commands, alerts, dashboards, conditions, Events, problems, chart values and
// the fields of the API. "make words" prints it on one page, and internal/doccheck looks
// for words on it that nobody should have to read twice.
//
// It has no list of its own. It reads what each text is declared in, or the page or CRD
// that "make generate" makes of that.
package publictexts
