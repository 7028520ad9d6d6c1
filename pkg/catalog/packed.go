package catalog

import (
	"bytes"
	"compress/flate"
	"encoding/json"
	"io"
	"strings"
	"sync"
	"sync/atomic"
	"weak"
)

// Packed is a value that takes few bytes while nobody uses it: compressed JSON. All who use it at
// the same time share one value, which the garbage collector takes once the last of them lets it go.
// It is safe for concurrent use.
type Packed[T any] struct {
	// text is empty if the value is not packed; kept is the value then.
	text string
	kept *T
	// open is the value while somebody uses it.
	open atomic.Pointer[weak.Pointer[T]]
}

// Pack packs a value, which must not change any more, unless it is long. It must be one that its JSON says wholly, as
// all objects are that were read from manifests or from the API server: times are whole seconds, and
// what is empty is nil.
func Pack[T any](value *T) *Packed[T] {
	p := &Packed[T]{}
	p.pack(value)
	return p
}

// PackWhole is Pack for a value that its JSON may not say wholly: then it stays as it is. same
// compares two values.
func PackWhole[T any](value *T, same func(a, b *T) bool) *Packed[T] {
	p := Pack(value)
	if p.kept == nil && !same(value, p.read()) {
		return &Packed[T]{kept: value}
	}
	return p
}

// mostPacked is the size in bytes up to which packing saves memory. What is longer has long strings, mostly
// code, which the source of the value may hold as well: then the value shares them.
const mostPacked = 8 << 10

func (p *Packed[T]) pack(value *T) {
	text, err := marshal(value)
	if err == nil {
		err = unmarshal(text, new(T)) // so that Open cannot fail
	}
	if err == nil {
		p.text = compress(text)
	}
	if err != nil || len(p.text) > mostPacked {
		p.text, p.kept = "", value
		return
	}
	used := weak.Make(value)
	p.open.Store(&used)
}

// Open is the value. It is shared and must not be changed. While somebody uses it, that costs no
// more than a look at a pointer; otherwise it takes the time to read JSON. A caller that opens a
// value again and again must keep what it has got.
func (p *Packed[T]) Open() *T {
	if p.kept != nil {
		return p.kept
	}
	for {
		before := p.open.Load()
		if value := before.Value(); value != nil {
			return value
		}
		value := p.read()
		if used := weak.Make(value); p.open.CompareAndSwap(before, &used) {
			return value
		}
	}
}

func (p *Packed[T]) read() *T {
	value := new(T)
	if err := unmarshal(expand(p.text), value); err != nil {
		panic("catalog: what was packed cannot be read: " + err.Error()) // pack has written it
	}
	return value
}

// Size is how many bytes the packed value takes; 0 if it stays as it is.
func (p *Packed[T]) Size() int { return len(p.text) }

// IsOpen reports whether somebody uses the value now, or has until the last garbage collection.
func (p *Packed[T]) IsOpen() bool { return p.kept != nil || p.open.Load().Value() != nil }

// marshal is json.Marshal without a second look at what a type writes itself.
func marshal(value any) ([]byte, error) {
	if own, is := value.(json.Marshaler); is {
		return own.MarshalJSON()
	}
	return json.Marshal(value)
}

func unmarshal(text []byte, value any) error {
	if own, is := value.(json.Unmarshaler); is {
		return own.UnmarshalJSON(text)
	}
	return json.Unmarshal(text, value)
}

// packLevel is flate's level of compression: higher ones take longer and save nothing.
const packLevel = 4

// packers and expanders are reused: one of them takes more memory than a thousand functions.
var (
	packers = sync.Pool{New: func() any {
		w, _ := flate.NewWriterDict(io.Discard, packLevel, []byte(packDictionary)) // the level is one
		return w
	}}
	expanders = sync.Pool{New: func() any { return flate.NewReaderDict(strings.NewReader(""), []byte(packDictionary)) }}
)

func compress(text []byte) string {
	var packed bytes.Buffer
	w := packers.Get().(*flate.Writer)
	defer packers.Put(w)
	w.Reset(&packed)
	// A buffer takes everything.
	_, _ = w.Write(text)
	_ = w.Close()
	return packed.String()
}

// expand is empty for what compress did not write.
func expand(packed string) []byte {
	r := expanders.Get().(io.ReadCloser)
	defer expanders.Put(r)
	_ = r.(flate.Resetter).Reset(strings.NewReader(packed), []byte(packDictionary))
	text, err := io.ReadAll(r)
	if err != nil {
		return nil
	}
	return text
}
