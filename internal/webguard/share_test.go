package webguard

import (
	"io"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestPagesThatMayReadAnswers(t *testing.T) {
	const page = "http://localhost:3000"
	says := func(headers http.Header) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			for name, values := range headers {
				w.Header()[name] = values
			}
			w.WriteHeader(http.StatusEarlyHints)
			_, _ = io.WriteString(w, "hi")
		}
	}
	shared := func(more http.Header) http.Header {
		h := http.Header{"Access-Control-Allow-Origin": {page}, "Access-Control-Expose-Headers": {"*"}, "Vary": {"Origin"}}
		for name, values := range more {
			h[name] = append(h[name], values...)
		}
		return h
	}
	preflight := http.Header{"Origin": {page}, "Access-Control-Request-Method": {"POST"}, "Access-Control-Request-Headers": {"content-type,windlass-tag"}}
	for name, c := range map[string]struct {
		origins []string
		method  string
		asks    http.Header
		says    http.Header
		code    int // 204 if the handler is not called
		want    http.Header
	}{
		"a preflight": {[]string{page}, "OPTIONS", preflight, nil, http.StatusNoContent,
			shared(http.Header{"Access-Control-Allow-Methods": {"POST"}, "Access-Control-Allow-Headers": {"content-type,windlass-tag"}})},
		"a preflight without headers": {[]string{page}, "OPTIONS", http.Header{"Origin": {page}, "Access-Control-Request-Method": {"PUT"}}, nil, http.StatusNoContent,
			shared(http.Header{"Access-Control-Allow-Methods": {"PUT"}})},
		"an OPTIONS of its own":   {[]string{page}, "OPTIONS", http.Header{"Origin": {page}}, nil, http.StatusOK, shared(nil)},
		"a call":                  {[]string{page}, "POST", http.Header{"Origin": {page}}, nil, http.StatusOK, shared(nil)},
		"a call that varies":      {[]string{page}, "POST", http.Header{"Origin": {page}}, http.Header{"Vary": {"Accept"}}, http.StatusOK, http.Header{"Access-Control-Allow-Origin": {page}, "Access-Control-Expose-Headers": {"*"}, "Vary": {"Accept", "Origin"}}},
		"the function says whose": {[]string{page}, "POST", http.Header{"Origin": {page}}, http.Header{"Access-Control-Allow-Origin": {"*"}}, http.StatusOK, http.Header{"Access-Control-Allow-Origin": {"*"}}},
		"another page":            {[]string{page}, "POST", http.Header{"Origin": {"http://localhost:3001"}}, nil, http.StatusOK, http.Header{}},
		"no page":                 {[]string{page}, "POST", http.Header{}, nil, http.StatusOK, http.Header{}},
		"no origin may":           {nil, "OPTIONS", preflight, nil, http.StatusOK, http.Header{}},
	} {
		t.Run(name, func(t *testing.T) {
			server := httptest.NewServer((Guard{Origins: c.origins}).Share(says(c.says)))
			defer server.Close()
			r, err := http.NewRequestWithContext(t.Context(), c.method, server.URL+"/function/hello", nil)
			if err != nil {
				t.Fatal(err)
			}
			r.Header = c.asks
			got, err := server.Client().Do(r)
			if err != nil {
				t.Fatal(err)
			}
			defer got.Body.Close()
			body, err := io.ReadAll(got.Body)
			if err != nil {
				t.Fatal(err)
			}
			for _, ofServer := range []string{"Content-Length", "Content-Type", "Date"} {
				got.Header.Del(ofServer)
			}
			if diff := cmp.Diff(c.want, got.Header); diff != "" || got.StatusCode != c.code || (len(body) > 0) != (c.code == http.StatusOK) {
				t.Errorf("answered with %d %q (-want +got):\n%s", got.StatusCode, body, diff)
			}
		})
	}
}
