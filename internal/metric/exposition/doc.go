// Package exposition writes metrics in the formats that Prometheus reads.
//
// A program has one Registry. It accepts Prometheus' own collectors, and Collectors of this
// package, which have a row for each of many subjects and a table of the series to make of a row:
//
//	reg.MustRegister(exposition.NewCollector([]exposition.Series[row]{
//		{queued.Declaration, func(r *row, tell exposition.Tell) {
//			tell(exposition.Sample{Labels: exposition.Labels{r.namespace, r.name}, Value: r.queued})
//		}},
//	}, readRows))
//
//	reading, err := reg.Read()
//	err = reading.Write(w, format, nil)
//
// Invariants:
//
//   - Write writes, byte for byte, what expfmt would write of the result of Gather.
//   - It holds neither a whole family of a Collector nor its text; it allocates only the rows.
//   - A Reading does not change, so any number of goroutines may write it at a time.
package exposition
