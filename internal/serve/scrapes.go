package serve

import (
	"compress/gzip"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/prometheus/common/expfmt"

	"github.com/windlass-dev/windlass/internal/metric/exposition"
)

// scrapes answers scrapers. The collected rows are shared, and encoded for each scraper while
// they are sent, so that no answer is ever in memory as a whole.
type scrapes struct{ from exposition.Source }

// ServeHTTP implements http.Handler.
func (s scrapes) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	reading, err := s.from.Read()
	if err != nil {
		http.Error(w, "metrics could not be collected: "+err.Error(), http.StatusInternalServerError)
		return
	}
	answer(w, r, reading)
}

// answer sends a reading in the format that the scraper prefers, and compressed if it says
// that it takes that.
func answer(w http.ResponseWriter, r *http.Request, reading exposition.Reading) {
	format := expfmt.NegotiateAccept(r.Header, exposition.Formats()...)
	h := w.Header()
	h.Set("Content-Type", string(format))
	h.Add("Vary", "Accept")
	h.Add("Vary", "Accept-Encoding")
	var wanted func(string) bool
	if names := r.URL.Query()["name[]"]; len(names) > 0 {
		wanted = func(name string) bool { return slices.Contains(names, name) }
	}
	send := func(to io.Writer) error { return reading.Write(to, format, wanted) }
	var err error
	if takesGzip(r.Header) {
		h.Set("Content-Encoding", "gzip")
		err = compressed(w, send)
	} else {
		err = send(w)
	}
	if err != nil {
		// What was cut off must not look whole.
		panic(http.ErrAbortHandler)
	}
}

// takesGzip tells whether an answer may be compressed.
func takesGzip(h http.Header) bool {
	for _, accepted := range strings.Split(strings.Join(h["Accept-Encoding"], ","), ",") {
		coding, weight, weighted := strings.Cut(strings.ReplaceAll(accepted, " ", ""), ";q=")
		q, _ := strconv.ParseFloat(weight, 64)
		if strings.EqualFold(coding, "gzip") && (!weighted || q > 0) {
			return true
		}
	}
	return false
}

// compressors are kept, since each takes a megabyte. Their level costs a quarter less CPU
// than the default one, for answers that are a tenth larger.
var compressors = sync.Pool{New: func() any {
	z, _ := gzip.NewWriterLevel(nil, gzip.BestSpeed) // it fails only for a level that there is not
	return z
}}

func compressed(w io.Writer, send func(io.Writer) error) error {
	z := compressors.Get().(*gzip.Writer)
	defer compressors.Put(z)
	z.Reset(w)
	if err := send(z); err != nil {
		return err
	}
	return z.Close()
}

// shared is a source that collects once for all requests within sharedFor. Concurrent requests
// wait for the same collection.
type shared struct {
	from exposition.Source
	// latest holds what was collected, or nil; who has taken it may collect.
	latest chan *collection
}

type collection struct {
	reading exposition.Reading
	err     error
}

func newShared(from exposition.Source) *shared {
	s := &shared{from: from, latest: make(chan *collection, 1)}
	s.latest <- nil
	return s
}

// Read implements exposition.Source.
func (s *shared) Read() (exposition.Reading, error) {
	c := <-s.latest
	if c == nil {
		c = new(collection)
		c.reading, c.err = s.from.Read()
		time.AfterFunc(sharedFor, s.expire)
	}
	s.latest <- c
	return c.reading, c.err
}

func (s *shared) expire() {
	<-s.latest
	s.latest <- nil
}
