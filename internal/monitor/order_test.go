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
