package replay

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/windlass-dev/windlass/internal/loadgen"
)

// Warm is what WarmProbe found.
type Warm struct {
	// Added are quantiles of what a call took beyond the function's own
	// time. Cold calls are not among them.
	Added Quantiles
	// Cold is how many of the calls were cold all the same.
	Cold int
}

// WarmProbe makes n GET calls to url, at least 1, one after the other on one
// connection that is kept alive, and measures what is added to each function's
// own time. One more call goes before them, to open the connection and to have
// an instance started; it is not measured. A call that fails or does not tell
// the function's own time ends the probe with an error, and so does a probe
// without any warm call.
func WarmProbe(ctx context.Context, url string, n int) (Warm, error) {
	if n < 1 {
		return Warm{}, fmt.Errorf("replay: a warm probe of %d calls measures nothing; make at least 1", n)
	}
	transport := loadgen.NewTransport(1)
	transport.MaxConnsPerHost = 1
	defer transport.CloseIdleConnections()
	client := loadgen.Client{Transport: transport}
	var warm Warm
	var added []time.Duration
	for i := range n + 1 {
		s, err := probe(ctx, client, url)
		if err != nil {
			return Warm{}, fmt.Errorf("replay: warm call %d of %s: %w", i, url, err)
		}
		switch {
		case i == 0:
		case s.Cold:
			warm.Cold++
		default:
			added = append(added, s.Setup())
		}
	}
	if len(added) == 0 {
		return Warm{}, fmt.Errorf("replay: all %d calls of %s were cold; let an instance stay longer than a call takes", n, url)
	}
	warm.Added = quantiles(added)
	return warm, nil
}

func probe(ctx context.Context, client loadgen.Client, url string) (Sample, error) {
	call := client.Do(ctx, loadgen.Request{Method: http.MethodGet, URL: url})
	if call.Err != nil {
		return Sample{}, call.Err
	}
	var s Sample
	s.read(call)
	switch {
	case s.Failed():
		return Sample{}, errors.New(s.Failure)
	case !s.OwnKnown:
		return Sample{}, errors.New("the answer does not tell the function's own time")
	}
	return s, nil
}
