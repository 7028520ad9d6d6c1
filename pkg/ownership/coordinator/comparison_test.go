package coordinator

import "testing"

func TestAComparisonNoticesAnotherHistory(t *testing.T) {
	a, b := LastWrite{"a", 4, 1, "x"}, LastWrite{"b", 5, 1, "x"}
	for name, tt := range map[string]struct {
		revision      int64
		keys          int
		last          LastWrite
		rewound, same bool
	}{
		"nothing has changed":             {7, 2, b, false, true},
		"others have written elsewhere":   {9, 2, b, false, true},
		"an earlier revision":             {6, 2, b, true, true},
		"a key more":                      {8, 3, b, false, false},
		"a key less":                      {8, 1, b, false, false},
		"a later write":                   {8, 2, LastWrite{"b", 8, 1, "x"}, false, false},
		"a write of an unknown key":       {8, 2, LastWrite{"c", 5, 1, "x"}, false, false},
		"another value at the revision":   {8, 2, LastWrite{"b", 5, 1, "y"}, false, false},
		"another lease at the revision":   {8, 2, LastWrite{"b", 5, 2, "x"}, false, false},
		"the last write is a known other": {8, 2, a, false, true}, // which only a listing shows
	} {
		t.Run(name, func(t *testing.T) {
			var c Comparison
			c.Saw(3)
			c.Listed([]LastWrite{{"a", 2, 1, "w"}, {"gone", 3, 1, "w"}})
			c.Changed(a)
			c.Changed(b)
			c.Deleted("gone")
			c.Saw(7)
			if rewound, same := c.Saw(tt.revision), c.Same(tt.keys, tt.last); rewound != tt.rewound || same != tt.same {
				t.Errorf("rewound %v and the same %v, want %v and %v", rewound, same, tt.rewound, tt.same)
			}
		})
	}
}

func TestEveryEighthComparisonLists(t *testing.T) {
	var c Comparison
	for range 3 {
		c.Listed(nil)
		for i := 1; i <= RelistAfter; i++ {
			if lists := c.Lists(); lists != (i == RelistAfter) {
				t.Errorf("comparison %d lists: %v", i, lists)
			}
		}
	}
}
