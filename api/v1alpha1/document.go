package v1alpha1

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"regexp"
	"strconv"
	"strings"

	kubejson "sigs.k8s.io/json"
	"sigs.k8s.io/yaml"
)

// document is one of the documents of a manifest.
type document struct {
	// line is how many lines of the manifest come before text.
	line int
	text []byte
	// json says that text is JSON beyond doubt.
	json bool
}

// splitDocuments takes a manifest apart at the markers of YAML, and where JSON
// objects follow each other. It does not count what is blank before the first
// marker, as is a licence in a comment.
func splitDocuments(data []byte) []document {
	data = bytes.TrimPrefix(data, []byte("\ufeff"))
	var docs []document
	add := func(line int, text []byte, marked bool) {
		if !marked && isBlank(text) {
			return
		}
		docs = append(docs, splitJSON(document{line: line, text: text})...)
	}
	start, startLine, marked := 0, 0, false
	offset, line := 0, 0
	for text := range bytes.Lines(data) {
		begins, ends := isMarker(text, "---"), isMarker(text, "...")
		if begins || ends {
			add(startLine, data[start:offset], marked)
			start, startLine, marked = offset, line, begins
		}
		offset, line = offset+len(text), line+1
		if ends {
			start, startLine = offset, line
		}
	}
	add(startLine, data[start:], marked)
	return docs
}

// isMarker says whether a line begins with a marker of YAML. Such a line cannot
// be a part of any value, however that is written.
func isMarker(line []byte, marker string) bool {
	rest, ok := bytes.CutPrefix(line, []byte(marker))
	return ok && (len(rest) == 0 || strings.ContainsRune(" \t\r\n", rune(rest[0])))
}

func isBlank(text []byte) bool {
	for line := range bytes.Lines(text) {
		if line = bytes.TrimSpace(line); len(line) > 0 && line[0] != '#' {
			return false
		}
	}
	return true
}

// splitJSON takes JSON objects that follow each other apart. What is not JSON
// is returned as it is: a flow mapping of YAML begins with a brace too.
func splitJSON(doc document) []document {
	if text := bytes.TrimSpace(doc.text); len(text) == 0 || text[0] != '{' {
		return []document{doc}
	}
	var docs []document
	decoder := json.NewDecoder(bytes.NewReader(doc.text))
	for {
		var object json.RawMessage
		switch err := decoder.Decode(&object); {
		case errors.Is(err, io.EOF):
			return docs
		case err != nil:
			return []document{doc}
		}
		before := int(decoder.InputOffset()) - len(object)
		docs = append(docs, document{line: doc.line + bytes.Count(doc.text[:before], []byte("\n")), text: object, json: true})
	}
}

// parse reads the document without regard to what it is about. Its numbers are
// int64 or float64. An empty document is nil.
func (d document) parse() (content any, problems []problem) {
	text := d.text
	if !d.json {
		var err error
		if text, err = yaml.YAMLToJSONStrict(d.text); err != nil {
			return nil, d.yamlProblems(err)
		}
	}
	strict, err := kubejson.UnmarshalStrict(text, &content, kubejson.DisallowDuplicateFields)
	if err != nil {
		return nil, []problem{{d.line + 1, "is not valid JSON: " + err.Error()}}
	}
	for _, err := range strict {
		problems = append(problems, problem{d.line + 1, givenTwice.ReplaceAllString(err.Error(), "$1: is given twice; keep one")})
	}
	return content, problems
}

// problem is something that is wrong in a line of a manifest.
type problem struct {
	line int
	text string
}

var (
	givenTwice  = regexp.MustCompile(`^duplicate field "(.*)"$`)
	yamlTwice   = regexp.MustCompile(`key "(.*)" already set in map$`)
	yamlLine    = regexp.MustCompile(`^line (\d+): `)
	yamlPrelude = regexp.MustCompile(`^(yaml: )?(unmarshal errors:)?\s*`)
)

// yamlProblems puts the errors of the YAML parser, which counts the lines of
// the document and speaks to programmers, into terms of the manifest.
func (d document) yamlProblems(err error) []problem {
	var problems []problem
	for text := range strings.Lines(yamlPrelude.ReplaceAllString(err.Error(), "")) {
		text = strings.TrimSpace(text)
		line := d.line + 1
		if m := yamlLine.FindStringSubmatch(text); m != nil {
			n, _ := strconv.Atoi(m[1])
			line = d.line + n
			text = text[len(m[0]):]
		}
		switch {
		case yamlTwice.MatchString(text):
			text = yamlTwice.ReplaceAllString(text, "$1: is given twice; keep one")
		case strings.Contains(text, "cannot start any token"):
			text = "is not valid YAML: " + text + "; indent with spaces, not tabs, and put text that begins with a special character in quotes"
		default:
			text = "is not valid YAML: " + text + "; check the indentation and the quotes around there"
		}
		problems = append(problems, problem{line, text})
	}
	return problems
}
