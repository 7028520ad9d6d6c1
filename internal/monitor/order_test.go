package monitor

import (
	"bytes"
	"encoding/json"
	"testing"
)

func TestQuantilesOfAChoiceAreNotKnown(t *testing.T) {
	v := View{
		Totals:    Totals{Functions: 2, Load: Load{Rate: 3, P50: 0.1, P99: 0.2}},
		Functions: []Function{{Namespace: "a", Name: "x", Load: Load{Rate: 1, P50: 0.1, P99: 0.2}}, {Namespace: "b", Name: "x", Load: Load{Rate: 2}}},
	}
	for namespace, known := range map[string]bool{"": true, "a": false} {
		text, err := json.Marshal(v.Of(Choice{Namespace: namespace}, ByName).Totals)
		if err != nil || bytes.Contains(text, []byte(`"p50Seconds"`)) != known || bytes.Contains(text, []byte(`"p99Seconds"`)) != known {
			t.Errorf("totals of the namespace %q: %v, %s", namespace, err, text)
		}
	}
}

func TestCalledIsWhatWasCalledInTheLastMinute(t *testing.T) {
	var w Watcher
	calls := 0.0
	for i := range 9 {
		if i == 1 {
			calls = 5
		}
		// A sample every 20 s: the calls came in the first interval.
		v := w.See(at(20*i, gateway(calls, 0).reading("g")))
		want := 0
		if i >= 1 && i <= 3 {
			want = 1
		}
		if sum := Sum(v.Functions); v.Totals.Called != want || sum.Called != want || helloOf(t, v).Called != (want > 0) {
			t.Errorf("%d s after the calls %d functions were called in the last minute, want %d", 20*(i-1), v.Totals.Called, want)
		}
	}
}
