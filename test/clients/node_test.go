//go:build clients

package clients

import (
	"encoding/json"
	"testing"
)

func TestNodeSendsAndGetsTrailersAndInterimAnswers(t *testing.T) {
	type came struct {
		Interim         []int
		Continued       bool
		Status          int
		Header, Trailer map[string]any
		Body            string
	}
	call := func(path string) (c came) {
		if err := json.Unmarshal([]byte(output(t, "node", "test/clients/testdata/http.mjs", url(peer)+path)), &c); err != nil {
			t.Fatal(err)
		}
		return c
	}
	got := call("/see")
	if saw := readSeen(t, []byte(got.Body)); !got.Continued || saw.Bytes != int64(len("first,second")) || saw.Length != -1 || saw.Trailer.Get("X-Sum") != "12" {
		t.Errorf("continued %v, and the function saw %+v", got.Continued, saw)
	}
	if got := call("/trailers"); got.Body != "12 bytes\n" || got.Trailer["x-sum"] != "12" || got.Trailer["x-unannounced"] != "yes" {
		t.Errorf("trailers: %+v", got)
	}
	// The function answers without the body, and so the client is not asked for it.
	if got := call("/hints"); got.Continued || got.Body != "hinted\n" || count(got.Interim, 103) != 2 {
		t.Errorf("interim answers: %+v", got)
	}
}

func count(all []int, one int) (n int) {
	for _, i := range all {
		if i == one {
			n++
		}
	}
	return n
}
