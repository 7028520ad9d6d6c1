// Program testreport reads what go test -json says, and prints what go test would say
// without -json. At the end it lists the tests that were skipped, and why: go test says
// so with -v only, where nobody finds it.
package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
)

func main() {
	if err := summarize(os.Stdin, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "testreport:", err)
		os.Exit(1)
	}
}

// event is a line of go test -json; see go doc cmd/test2json.
type event struct {
	Action  string
	Package string
	// Test is "" in what a package says.
	Test   string
	Output string
}

// transcript is what the tests of a package have said so far.
type transcript struct {
	said []event
	// over has how each test ended: pass, fail or skip.
	over map[string]string
}

// summarize copies to out what a reader of test results needs of what it reads from in.
func summarize(in io.Reader, out io.Writer) error {
	packages := make(map[string]*transcript)
	skipped := make(map[string][]string) // tests by why
	lines := bufio.NewReader(in)
	for {
		line, err := lines.ReadString('\n')
		if errors.Is(err, io.EOF) && line == "" {
			break
		}
		if err != nil && !errors.Is(err, io.EOF) {
			return err
		}
		var e event
		if json.Unmarshal([]byte(line), &e) != nil {
			// What go test cannot say in JSON.
			fmt.Fprint(out, line)
			continue
		}
		if e.Action == "build-output" {
			fmt.Fprint(out, e.Output)
			continue
		}
		t := packages[e.Package]
		if t == nil {
			t = &transcript{over: make(map[string]string)}
			packages[e.Package] = t
		}
		switch e.Action {
		case "output":
			t.said = append(t.said, e)
		case "pass", "fail", "skip":
			t.over[e.Test] = e.Action
			if e.Test == "" {
				t.print(out)
				delete(packages, e.Package)
			} else if e.Action == "skip" {
				why := t.reason(e.Test)
				skipped[why] = append(skipped[why], e.Package+" "+e.Test)
			}
		}
	}
	for _, t := range packages { // that go test did not end
		t.print(out)
	}
	if len(skipped) > 0 {
		fmt.Fprintln(out, "\nSkipped on this machine:")
	}
	for _, why := range slices.Sorted(maps.Keys(skipped)) {
		fmt.Fprintf(out, "  %s\n    %s\n", why, strings.Join(skipped[why], "\n    "))
	}
	return nil
}

// print prints of a package that passed its last line alone, and of another what its
// tests said that did not pass.
func (t *transcript) print(out io.Writer) {
	ended := t.over[""]
	for _, e := range t.said {
		how := t.over[e.Test]
		switch {
		case strings.HasPrefix(e.Output, "=== "):
		case e.Test != "" && (how == "pass" || how == "skip"):
		case e.Test == "" && ended != "fail" && ended != "" && !summary(e.Output):
		default:
			fmt.Fprint(out, e.Output)
		}
	}
}

// summary tells whether a line is the one that go test prints for each package that
// did not fail.
func summary(line string) bool {
	return strings.HasPrefix(line, "ok  \t") || strings.HasPrefix(line, "?   \t")
}

// place is where in the source a test said something.
var place = regexp.MustCompile(`^\S+\.go:\d+: `)

// reason is what a test said before it was skipped.
func (t *transcript) reason(test string) string {
	var said []string
	for _, e := range t.said {
		text := strings.TrimSpace(e.Output)
		if e.Test != test || strings.HasPrefix(text, "=== ") || strings.HasPrefix(text, "--- ") {
			continue
		}
		said = append(said, place.ReplaceAllString(text, ""))
	}
	return strings.Join(said, " ")
}
