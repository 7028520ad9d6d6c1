package main

import (
	"testing"

	"github.com/windlass-dev/windlass/api/v1alpha1"
)

func TestTheSlotIsOfTheRevisionThatMostCallsGoTo(t *testing.T) {
	part := func(revision string, weight int32) v1alpha1.TrafficStatus {
		return v1alpha1.TrafficStatus{RevisionName: revision, Weight: weight}
	}
	tests := map[string]struct {
		traffic []v1alpha1.TrafficStatus
		want    string
	}{
		"no calls go anywhere":        {nil, ""},
		"all go to one":               {[]v1alpha1.TrafficStatus{part("a", 100)}, "a"},
		"one has only its tag":        {[]v1alpha1.TrafficStatus{part("a", 0)}, ""},
		"a second one has more":       {[]v1alpha1.TrafficStatus{part("a", 10), part("b", 90)}, "b"},
		"both have half":              {[]v1alpha1.TrafficStatus{part("a", 50), part("b", 50)}, "a"},
		"one has more in two entries": {[]v1alpha1.TrafficStatus{part("b", 40), part("a", 30), part("a", 30)}, "a"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			if got, found := mostCalled(tt.traffic); got != tt.want || found != (tt.want != "") {
				t.Errorf("it is %q, %v, want %q", got, found, tt.want)
			}
		})
	}
}
