package main

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func get(text, target string) *httptest.ResponseRecorder {
	w := httptest.NewRecorder()
	searcher(text).ServeHTTP(w, httptest.NewRequest(http.MethodGet, target, nil))
	return w
}

func TestMatchingLinesAreStreamedWithTheirNumbers(t *testing.T) {
	const text = "The ship\n  sails; a SHIP\nsleeps\nshipshape \"ß\"\n"
	for _, c := range []struct{ target, want string }{
		{"/?q=ship", `{"line":1,"text":"The ship"}
{"line":2,"text":"sails; a SHIP"}
{"line":4,"text":"shipshape \"ß\""}
`},
		{"/?q=A+Ship", `{"line":2,"text":"sails; a SHIP"}` + "\n"},
		{"/?q=whale", ""},
	} {
		w := get(text, c.target)
		if w.Code != http.StatusOK || w.Header().Get("Content-Type") != "application/x-ndjson" {
			t.Errorf("%s: got %d %s", c.target, w.Code, w.Header())
		}
		if diff := cmp.Diff(c.want, w.Body.String()); diff != "" {
			t.Errorf("%s (-want +got):\n%s", c.target, diff)
		}
		if c.want != "" && !w.Flushed {
			t.Errorf("%s: nothing was streamed", c.target)
		}
	}
}

func TestTheBundledTextIsSearched(t *testing.T) {
	if got := get(text, "/?q=perpetual").Body.String(); strings.Count(got, "\n") != 2 {
		t.Errorf("got %q, want two lines", got)
	}
}

func TestASearchForNothingIsRefused(t *testing.T) {
	if w := get("text", "/"); w.Code != http.StatusBadRequest || !strings.Contains(w.Body.String(), "q is missing") {
		t.Errorf("got %d %q", w.Code, w.Body)
	}
}
