// Package exposition tells metrics in the formats that Prometheus reads.
//
// A program has one Registry. It takes prometheus' own collectors, and Collectors of this
// package, which have a row for each of many subjects and a table of the series that are
// made of a row:
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
// It promises that what Write writes is what expfmt writes of all that Gather returns, byte
// for byte, and that it holds neither a whole family of a Collector nor its text: what is
// allocated is the rows. A Reading is only read, so any number may write it at a time.
package exposition
