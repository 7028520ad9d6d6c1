package scrape

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
)

// maxAnswer is how many bytes of metrics one process may tell.
const maxAnswer = 64 << 20

// Metrics reads the metrics at a URL.
func Metrics(ctx context.Context, transport http.RoundTripper, url string) ([]*dto.MetricFamily, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return nil, err
	}
	request.Header.Set("Accept", string(expfmt.NewFormat(expfmt.TypeProtoDelim)))
	response, err := transport.RoundTrip(request)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("it answered %s", response.Status)
	}
	return decode(response)
}

func decode(response *http.Response) (families []*dto.MetricFamily, err error) {
	body := &io.LimitedReader{R: response.Body, N: maxAnswer}
	decoder := expfmt.NewDecoder(body, expfmt.ResponseFormat(response.Header))
	for {
		family := &dto.MetricFamily{}
		err := decoder.Decode(family)
		switch {
		case body.N <= 0:
			return nil, fmt.Errorf("it tells more than %d MiB", maxAnswer>>20)
		case errors.Is(err, io.EOF):
			return families, nil
		case err != nil:
			return nil, fmt.Errorf("its metrics cannot be read: %w: check that it and this command have the same version", err)
		}
		families = append(families, family)
	}
}
