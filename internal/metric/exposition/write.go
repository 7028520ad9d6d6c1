package exposition

import (
	"io"

	"github.com/prometheus/common/expfmt"
)

// Formats are the formats that Write supports, the preferred ones first.
func Formats() []expfmt.Format {
	return []expfmt.Format{expfmt.FmtOpenMetrics_1_0_0, expfmt.FmtOpenMetrics_0_0_1, expfmt.FmtProtoDelim, expfmt.FmtText}
}

// Write writes the families for which wanted is true, in the order of their names; nil writes
// all.
func (r Reading) Write(w io.Writer, format expfmt.Format, wanted func(name string) bool) error {
	ordinary, families := expfmt.NewEncoder(w, format), newEncoder(w, format)
	i, k := 0, 0
	for i < len(r.ordinary) || k < len(r.families) {
		var name string
		var write func() error
		if k == len(r.families) || i < len(r.ordinary) && r.ordinary[i].GetName() < r.families[k].Name {
			f := r.ordinary[i]
			name, write = f.GetName(), func() error { return ordinary.Encode(f) }
			i++
		} else {
			f := r.families[k]
			name, write = f.Name, func() error { return families.encode(f) }
			k++
		}
		if wanted != nil && !wanted(name) {
			continue
		}
		if err := write(); err != nil {
			return err
		}
	}
	// OpenMetrics has an end.
	return ordinary.(expfmt.Closer).Close()
}
