package invocation_test

import (
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/windlass-dev/windlass/pkg/invocation"
)

func TestAnExcerptIsBounded(t *testing.T) {
	for name, text := range map[string]string{
		"nothing":            "",
		"short":              "it broke",
		"just short enough":  strings.Repeat("x", invocation.MaxExcerpt),
		"too long":           strings.Repeat("x", invocation.MaxExcerpt+1),
		"too long, of runes": strings.Repeat("é", invocation.MaxExcerpt),
		"no UTF-8":           strings.Repeat("\x80", 2*invocation.MaxExcerpt),
	} {
		got := invocation.Excerpt(text)
		switch {
		case len(text) <= invocation.MaxExcerpt && got != text:
			t.Errorf("%s: became %q", name, got)
		case len(text) > invocation.MaxExcerpt && (len(got) > invocation.MaxExcerpt || !strings.HasSuffix(got, "(cut)")):
			t.Errorf("%s: has %d bytes and ends with %q", name, len(got), got[len(got)-9:])
		case utf8.ValidString(text) && !utf8.ValidString(got):
			t.Errorf("%s: was cut within a rune", name)
		}
	}
}
