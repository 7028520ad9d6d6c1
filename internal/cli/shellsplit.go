package cli

import (
	"errors"
	"fmt"
	"strings"
	"unicode"
)

// shellOnly are characters that mean something to a shell where they are not
// quoted, and that Windlass, which starts programs itself, would hand on.
const shellOnly = "|&;<>()$`*?#~\n"

// splitWords splits a command line into its words as a shell does: quotes and
// backslashes keep what they protect together. It expands nothing, and refuses
// what only a shell would understand.
func splitWords(line string) ([]string, error) {
	var words []string
	var word strings.Builder
	var quote rune
	escaped, inWord := false, false
	for _, r := range line {
		switch {
		case escaped:
			if quote == '"' && !strings.ContainsRune("\"\\$`", r) {
				word.WriteByte('\\')
			}
			word.WriteRune(r)
			escaped = false
		case r == '\\' && quote != '\'':
			escaped, inWord = true, true
		case quote == 0 && (r == '\'' || r == '"'):
			quote, inWord = r, true
		case quote == r:
			quote = 0
		case quote == 0 && (r == ' ' || r == '\t'):
			if inWord {
				words = append(words, word.String())
				word.Reset()
				inWord = false
			}
		case quote == 0 && strings.ContainsRune(shellOnly, r), quote == '"' && (r == '$' || r == '`'):
			return nil, fmt.Errorf("%q needs a shell, and a command is started without one; quote it, or write: -- sh -c '...'", string(r))
		default:
			word.WriteRune(r)
			inWord = true
		}
	}
	switch {
	case quote != 0:
		return nil, fmt.Errorf("the quote %c is not closed; close it", quote)
	case escaped:
		return nil, errors.New("a backslash at the end protects nothing; remove it")
	case inWord:
		words = append(words, word.String())
	}
	if len(words) == 0 {
		return nil, errors.New("it is empty; write for example python3 app.py")
	}
	return words, nil
}

// typed writes words as people type them to a shell, which takes each as it is.
func typed(words ...string) string {
	quoted := make([]string, len(words))
	for i, word := range words {
		quoted[i] = word
		if word == "" || strings.ContainsFunc(word, isQuoted) {
			quoted[i] = "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
		}
	}
	return strings.Join(quoted, " ")
}

// isQuoted reports whether a character may mean something to a shell.
func isQuoted(r rune) bool {
	return !unicode.IsLetter(r) && !unicode.IsDigit(r) && !strings.ContainsRune("-_./:@%+=,", r)
}
