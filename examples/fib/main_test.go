package main

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

func get(target string) *httptest.ResponseRecorder {
	w := httptest.NewRecorder()
	serve(w, httptest.NewRequest(http.MethodGet, target, nil))
	return w
}

func TestANumberIsComputed(t *testing.T) {
	for target, want := range map[string]int{"/?n=0": 0, "/?n=1": 1, "/?n=10": 55, "/?n=20": 6765} {
		var got answer
		w := get(target)
		if err := json.Unmarshal(w.Body.Bytes(), &got); err != nil || w.Code != http.StatusOK {
			t.Fatalf("%s: %d %s (%v)", target, w.Code, w.Body, err)
		}
		if got.Result != want || got.Rounds != 1 {
			t.Errorf("%s: got %+v, want the result %d", target, got, want)
		}
	}
}

func TestATimeIsFilledWithRounds(t *testing.T) {
	for _, c := range []struct {
		target    string
		atLeastMs float64
	}{{"/?ms=0", 0}, {"/?ms=0.5", 0.5}, {"/?ms=20", 20}} {
		var got answer
		if err := json.Unmarshal(get(c.target).Body.Bytes(), &got); err != nil {
			t.Fatal(err)
		}
		if got.Ms < c.atLeastMs || got.N != roundN || got.Result != 6765 || got.Rounds < 1 {
			t.Errorf("%s: got %+v", c.target, got)
		}
	}
}

func TestAWrongRequestIsToldWhatToGive(t *testing.T) {
	for target, want := range map[string]string{
		"/":          "give either n",
		"/?n=1&ms=1": "give either n",
		"/?n=x":      `n is "x"`,
		"/?n=-1":     "from 0 to 48",
		"/?n=49":     "from 0 to 48",
		"/?ms=NaN":   `ms is "NaN"`,
		"/?ms=-1":    "number of milliseconds",
		"/?ms=1e300": "number of milliseconds",
		"/?ms=soon":  `ms is "soon"`,
	} {
		w := get(target)
		if w.Code != http.StatusBadRequest || !strings.Contains(w.Body.String(), want) {
			t.Errorf("%s: got %d %q, want 400 and %q", target, w.Code, w.Body, want)
		}
	}
}
