package invoke_test

import (
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/windlass-dev/windlass/pkg/invoke"
)

func TestAnExcerptIsBounded(t *testing.T) {
	for name, text := range map[string]string{
		"nothing":            "",
		"short":              "it broke",
		"just short enough":  strings.Repeat("x", invoke.MaxExcerpt),
		"too long":           strings.Repeat("x", invoke.MaxExcerpt+1),
		"too long, of runes": strings.Repeat("é", invoke.MaxExcerpt),
		"no UTF-8":           strings.Repeat("\x80", 2*invoke.MaxExcerpt),
	} {
		got := invoke.Excerpt(text)
		switch {
		case len(text) <= invoke.MaxExcerpt && got != text:
			t.Errorf("%s: became %q", name, got)
		case len(text) > invoke.MaxExcerpt && (len(got) > invoke.MaxExcerpt || !strings.HasSuffix(got, "(cut)")):
			t.Errorf("%s: has %d bytes and ends with %q", name, len(got), got[len(got)-9:])
		case utf8.ValidString(text) && !utf8.ValidString(got):
			t.Errorf("%s: was cut within a rune", name)
		}
	}
}
