package invocation

import "unicode/utf8"

// MaxExcerpt is the length in bytes of the longest text that is kept of what an
// instance or a function says.
const MaxExcerpt = 4 << 10

const cutMark = "... (cut)"

// Excerpt is a text that is fit to be kept and shown: its beginning if it is
// longer than MaxExcerpt.
func Excerpt(text string) string { return ExcerptOf(text, MaxExcerpt) }

// ExcerptOf is a text, or its beginning if it is longer than most bytes.
func ExcerptOf(text string, most int) string {
	if len(text) <= most {
		return text
	}
	limit := max(0, most-len(cutMark))
	end := limit
	for end > 0 && !utf8.RuneStart(text[end]) {
		end--
	}
	if limit-end >= utf8.UTFMax {
		end = limit // It is no UTF-8, which has no rune to be spared.
	}
	if end == 0 {
		return ""
	}
	return text[:end] + cutMark
}
