package spelling

import (
	"math"
	"strings"
	"testing"
)

func TestDistance(t *testing.T) {
	for _, c := range []struct {
		a, b string
		want int
	}{
		{"", "", 0},
		{"", "abc", 3},
		{"hello", "hello", 0},
		{"hello", "hallo", 1},
		{"hello", "helo", 1},
		{"helo", "hello", 1},
		{"hello", "ehllo", 1},
		{"idempotent", "idemptoent", 1},
		{"kitten", "sitting", 3},
		{strings.Repeat("a", 65), strings.Repeat("a", 65), math.MaxInt},
	} {
		if got := Distance(c.a, c.b); got != c.want {
			t.Errorf("%q to %q: %d, want %d", c.a, c.b, got, c.want)
		}
	}
}
