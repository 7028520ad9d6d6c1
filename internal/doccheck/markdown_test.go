package doccheck

import (
	"fmt"
	"regexp"
	"strings"
	"testing"
	"unicode"
)

// page is what is checked of one Markdown file.
type page struct {
	// links are the targets of links and images, with the line they are on.
	links []mention
	// commands are the code spans, and the lines of code blocks.
	commands []mention
	// anchors are the fragments by which a link can name a heading.
	anchors map[string]bool
}

// mention is a text and the line on which it stands, counted from 1.
type mention struct {
	text string
	line int
}

var (
	fence       = regexp.MustCompile("^ {0,3}(```+|~~~+)")
	heading     = regexp.MustCompile(`^ {0,3}#{1,6} +(.*?)(?: +#+)? *$`)
	codeSpan    = regexp.MustCompile("`([^`]+)`")
	inlineLink  = regexp.MustCompile(`\]\(<?([^)\s>]+)>?(?:\s+["'][^)]*["'])?\)`)
	linkByName  = regexp.MustCompile(`^ {0,3}\[[^\]^]+\]:\s*<?([^\s>]+)>?`)
	htmlLink    = regexp.MustCompile(`(?:href|src)="([^"]+)"`)
	htmlAnchor  = regexp.MustCompile(`<a (?:id|name)="([^"]+)"`)
	linkInTitle = regexp.MustCompile(`!?\[([^\]]*)\]\([^)]*\)`)
)

// parse reads the text of a Markdown file.
func parse(text string) page {
	p := page{anchors: map[string]bool{}}
	closing := ""
	for i, line := range strings.Split(text, "\n") {
		number := i + 1
		if mark := fence.FindStringSubmatch(line); mark != nil {
			switch {
			case closing == "":
				closing = mark[1]
			case strings.HasPrefix(mark[1], closing):
				closing = ""
			}
			continue
		}
		if closing != "" {
			p.commands = append(p.commands, mention{line, number})
			continue
		}
		if title := heading.FindStringSubmatch(line); title != nil {
			p.addAnchor(title[1])
		}
		for _, span := range codeSpan.FindAllStringSubmatch(line, -1) {
			p.commands = append(p.commands, mention{span[1], number})
		}
		for _, anchor := range htmlAnchor.FindAllStringSubmatch(line, -1) {
			p.anchors[anchor[1]] = true
		}
		prose := codeSpan.ReplaceAllString(line, "code")
		for _, form := range []*regexp.Regexp{inlineLink, linkByName, htmlLink} {
			for _, link := range form.FindAllStringSubmatch(prose, -1) {
				p.links = append(p.links, mention{link[1], number})
			}
		}
	}
	return p
}

// addAnchor derives a heading's fragment as code hosts do: lower case, words
// joined by hyphens, punctuation dropped, and a number if it was taken.
func (p page) addAnchor(title string) {
	title = linkInTitle.ReplaceAllString(title, "$1")
	slug := strings.Map(func(r rune) rune {
		switch {
		case r == ' ':
			return '-'
		case r == '-', r == '_', unicode.IsLetter(r), unicode.IsNumber(r):
			return unicode.ToLower(r)
		}
		return -1
	}, title)
	anchor := slug
	for n := 1; p.anchors[anchor]; n++ {
		anchor = fmt.Sprintf("%s-%d", slug, n)
	}
	p.anchors[anchor] = true
}

// makeTargets lists the targets that a line of shell gives to make.
func makeTargets(command string) []string {
	var targets []string
	for _, part := range regexp.MustCompile(`&&|\|\||[;|]`).Split(command, -1) {
		words := strings.Fields(strings.TrimPrefix(strings.TrimSpace(part), "$ "))
		if len(words) == 0 || words[0] != "make" {
			continue
		}
		for _, word := range words[1:] {
			if strings.HasPrefix(word, "#") || word == "-C" || word == "-f" {
				break
			}
			if !strings.HasPrefix(word, "-") && !strings.Contains(word, "=") {
				targets = append(targets, word)
			}
		}
	}
	return targets
}

func TestParse(t *testing.T) {
	text := strings.Join([]string{
		"# The `windlass` tool, v1!",
		"See [a](docs/a.md#part), ![b](b.png \"a title\") and [c][c].",
		"[c]: <../c.md>",
		"Not a link: `[x](y)`, but `make run` is a command.",
		"```sh",
		"make test [z](w)",
		"# not a heading",
		"```",
		"## Part",
		"## Part",
		`<a id="own"></a><img src="d.svg">`,
	}, "\n")
	p := parse(text)
	if got, want := fmt.Sprint(p.links), "[{docs/a.md#part 2} {b.png 2} {../c.md 3} {d.svg 11}]"; got != want {
		t.Errorf("links are %s, want %s", got, want)
	}
	if got, want := fmt.Sprint(p.commands), "[{windlass 1} {[x](y) 4} {make run 4} {make test [z](w) 6} {# not a heading 7}]"; got != want {
		t.Errorf("commands are %s, want %s", got, want)
	}
	if got, want := fmt.Sprint(p.anchors), "map[own:true part:true part-1:true the-windlass-tool-v1:true]"; got != want {
		t.Errorf("anchors are %s, want %s", got, want)
	}
}

func TestMakeTargets(t *testing.T) {
	tests := map[string]struct {
		command string
		want    []string
	}{
		"several targets":               {"make verify test", []string{"verify", "test"}},
		"a prompt and a comment":        {"$ make run   # and wait", []string{"run"}},
		"flags and variables":           {"make -j2 test RACE=", []string{"test"}},
		"one command of several":        {"cd x && make demo; ls", []string{"demo"}},
		"another project's makefile":    {"make -C other install", nil},
		"prose is not a command":        {"to make sure", nil},
		"a longer name is another tool": {"makefile test", nil},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			if got := makeTargets(tt.command); fmt.Sprint(got) != fmt.Sprint(tt.want) {
				t.Errorf("makeTargets(%q) = %v, want %v", tt.command, got, tt.want)
			}
		})
	}
}
