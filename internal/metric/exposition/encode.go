package exposition

import (
	"bytes"
	"io"
	"slices"
	"strings"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/windlass-dev/windlass/internal/metric"
)

// encoder writes families a chunk of samples at a time. A message holds one chunk, and is
// used again for the next, also of other families.
type encoder struct {
	w      io.Writer
	encode func(f family) error

	family dto.MetricFamily
	all    [chunkSize]*dto.Metric
	slots  [chunkSize]slot
	// order says for each label of the message which one of a sample it is: the first are
	// in the order of their names, the second as they were declared.
	order  []int
	buffer bytes.Buffer
	bytes  []byte
}

// chunkSize is small, since a chunk and its text are all that is held of a family.
const chunkSize = 64

// slot is the message of one sample.
type slot struct {
	metric    dto.Metric
	counter   dto.Counter
	gauge     dto.Gauge
	histogram nativeMessage
	since     timestamppb.Timestamp
	value     float64
	labels    [maxLabels]dto.LabelPair
	values    Labels
	pairs     [maxLabels]*dto.LabelPair
}

// newEncoder makes one for a format that was negotiated. Declared names are proper in every
// format, so what the format says of escaping is of no matter.
func newEncoder(w io.Writer, format expfmt.Format) *encoder {
	e := &encoder{w: w}
	switch format.FormatType() {
	case expfmt.TypeProtoDelim:
		e.encode = e.protobuf
	case expfmt.TypeOpenMetrics:
		e.encode = e.text(func(w io.Writer, f *dto.MetricFamily) (int, error) { return expfmt.MetricFamilyToOpenMetrics(w, f) })
	default:
		e.encode = e.text(expfmt.MetricFamilyToText)
	}
	for i := range e.slots {
		s := &e.slots[i]
		e.all[i] = &s.metric
		s.counter.Value, s.gauge.Value = &s.value, &s.value
		for l := range s.labels {
			s.labels[l].Value, s.pairs[l] = &s.values[l], &s.labels[l]
		}
	}
	return e
}

// text encodes chunks as families of their own, and drops the lines on the family of all
// but the first.
func (e *encoder) text(write func(w io.Writer, f *dto.MetricFamily) (int, error)) func(f family) error {
	return func(f family) error {
		e.beginFamily(f)
		first := true
		return e.chunks(f, func() error {
			e.buffer.Reset()
			if _, err := write(&e.buffer, &e.family); err != nil {
				return err
			}
			text := e.buffer.Bytes()
			for !first && text[0] == '#' {
				text = text[bytes.IndexByte(text, '\n')+1:]
			}
			first = false
			_, err := e.w.Write(text)
			return err
		})
	}
}

// protobuf encodes the family without samples, and then chunks without what the family has
// beside: concatenated messages are one message with the fields of all. Their length comes
// first, so samples are walked twice.
func (e *encoder) protobuf(f family) error {
	e.beginFamily(f)
	e.family.Metric = nil
	head, err := proto.Marshal(&e.family)
	if err != nil {
		return err
	}
	e.family.Name, e.family.Help, e.family.Type = nil, nil, nil
	size := 0
	_ = e.chunks(f, func() error { size += proto.Size(&e.family); return nil })
	if size == 0 {
		return nil
	}
	if _, err := e.w.Write(append(protowire.AppendVarint(nil, uint64(len(head)+size)), head...)); err != nil {
		return err
	}
	return e.chunks(f, func() (err error) {
		if e.bytes, err = (proto.MarshalOptions{}).MarshalAppend(e.bytes[:0], &e.family); err != nil {
			return err
		}
		_, err = e.w.Write(e.bytes)
		return err
	})
}

var kinds = map[metric.Kind]dto.MetricType{
	metric.KindCounter: dto.MetricType_COUNTER, metric.KindGauge: dto.MetricType_GAUGE, metric.KindHistogram: dto.MetricType_HISTOGRAM,
}

// beginFamily makes the message that of a family without samples.
func (e *encoder) beginFamily(f family) {
	kind := kinds[f.Kind]
	e.family.Name, e.family.Help, e.family.Type = &f.Name, &f.Help, &kind
	e.order = e.order[:0]
	for i := range f.Labels {
		e.order = append(e.order, i)
	}
	slices.SortFunc(e.order, func(a, b int) int { return strings.Compare(f.Labels[a], f.Labels[b]) })
	for i := range e.slots {
		s := &e.slots[i]
		s.metric.Counter, s.metric.Gauge, s.metric.Histogram = nil, nil, nil
		switch f.Kind {
		case metric.KindCounter:
			s.metric.Counter = &s.counter
		case metric.KindGauge:
			s.metric.Gauge = &s.gauge
		case metric.KindHistogram:
			s.metric.Histogram = &s.histogram.Histogram
		}
		for l, declared := range e.order {
			s.labels[l].Name = &f.Labels[declared]
		}
		s.metric.Label = s.pairs[:len(e.order)]
	}
}

// chunks calls write with each chunk of the family in the message.
func (e *encoder) chunks(f family, write func() error) error {
	n := 0
	for sample := range f.samples {
		if n == chunkSize {
			if err := e.chunk(n, write); err != nil {
				return err
			}
			n = 0
		}
		s := &e.slots[n]
		for l, declared := range e.order {
			s.values[l] = sample.Labels[declared]
		}
		s.value, s.counter.CreatedTimestamp, s.histogram.CreatedTimestamp = sample.Value, nil, nil
		if sample.Histogram != nil {
			s.histogram.set(sample.Histogram)
		}
		if !sample.Since.IsZero() {
			s.since.Seconds, s.since.Nanos = sample.Since.Unix(), int32(sample.Since.Nanosecond())
			s.counter.CreatedTimestamp, s.histogram.CreatedTimestamp = &s.since, &s.since
		}
		n++
	}
	if n == 0 {
		return nil
	}
	return e.chunk(n, write)
}

func (e *encoder) chunk(n int, write func() error) error {
	e.family.Metric = e.all[:n]
	return write()
}
