package invoke

import "unicode/utf8"

// MaxExcerpt is the length in bytes of the longest text that is kept of what an
// instance or a function says.
const MaxExcerpt = 4 << 10

const cutMark = "... (cut)"

// Excerpt is a text that is fit to be kept and shown: its beginning if it is
// longer than MaxExcerpt.
func Excerpt(text string) string {
	if len(text) <= MaxExcerpt {
		return text
	}
	end := MaxExcerpt - len(cutMark)
	for end > 0 && !utf8.RuneStart(text[end]) {
		end--
	}
	return text[:end] + cutMark
}
