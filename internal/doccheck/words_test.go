package doccheck

import (
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/windlass-dev/windlass/internal/publictexts"
)

// unclear are phrases that made readers of public texts and pages stop, and what to write
// instead. A phrase may be a regular expression; its case does not matter, and a space in it
// may be the end of a line.
var unclear = []struct{ phrase, instead string }{
	{"whoever", "name the actor: the caller, the scheduler"},
	{"of which", "begin another sentence"},
	{"(is|are|was|were|be|been) told", "say who sends or sets it"},
	{"tells? of|(agent|node|pod|scheduler)s? (tell|tells|told)", "reports"},
	{"as (the|their|its) agents? says?", "as reported by the agents"},
	{"what there is", "name the thing"},
	{"there (is|are) to be", "desired"},
	{"the least|least level", "minimum"},
	{"at the most|the most that", "at most"},
	{"in vain", "say what did not come, or did not work"},
	{"hopeless", "say what cannot be done in time"},
	{"as it stands|carried out", "valid"},
	{"comes? into use", "takes effect, or calls go to it"},
	{"must hold of", "is a requirement on"},
	{"what became of|what becomes of", "how it ended, what happens to it"},
	{"what differs", "settings of, overrides"},
	{"that (is|are) none", "invalid"},
	{"is there twice", "occurs twice"},
	{"(do|does) not count", "is not valid"},
	{"lets? nobody in", "gives no access"},
	{"proven nothing", "not yet proven who they are"},
	{"said? hello", "connected"},
	{"heed", "retry after"},
	{"oftener", "more often"},
	{"softly", "prefer"},
	{"opened anew", "opened again"},
	{"read by nothing", "does not read"},
	{"(is|are) not there", "cannot be reached, does not exist"},
	{"everything random follows", "seeds"},
	{"all else", "everything else"},
	{"none is (started|asked)", "say who starts or asks none"},
	{"is being (made|started)", "say who creates it, or: is starting"},
	{"some seconds ago", "can be some seconds old"},
	{"anew", "again, or: a new one"},
	{"turn(s|ed)? away", "refuses"},
	{"(stands?|stood) in for", "a standby takes over"},
	{"for want of", "for lack of, because nothing"},
	{"held against", "counts against, is a failure of"},
	{"(is|are) taken for", "counts as"},
	{"of late", "recently"},
	{"(stands?|stood) still", "is paused, does not change"},
	{"but for", "except"},
	{"withdraws?|withdrawals?", "cancels, cancellation"},
	{"brings? along|comes? along", "has, is built in"},
	{"in a fright", "say what does not happen, and why"},
	{"births?|born|stillborn|rooms|cautious|chronicle|happenings?|gifts?|heard of", "a word of the glossary"},
}

// People read these texts under stress, and many of them in a second language.
func TestPublicTextsReadInOneGo(t *testing.T) {
	groups, err := publictexts.Gather(root)
	if err != nil {
		t.Fatal(err)
	}
	for _, g := range groups {
		for _, text := range g.Texts {
			for _, found := range unclearIn(text.Text) {
				t.Errorf("%s: %s: %s, in %q", g.Title, text.Of, found.text, text.Text)
			}
		}
	}
}

// The prose of pages is held to the same words. Results are recorded output.
func TestPagesReadInOneGo(t *testing.T) {
	eachPage(t, func(t *testing.T, path, text string) {
		if strings.HasPrefix(path, filepath.Join(root, "docs", "results")+string(filepath.Separator)) {
			return
		}
		for _, found := range unclearIn(proseOf(text)) {
			t.Errorf("%s:%d: %s", path, found.line, found.text)
		}
	})
}

// unclearForms are the expressions that find the phrases of unclear.
var unclearForms = func() (forms []*regexp.Regexp) {
	for _, u := range unclear {
		forms = append(forms, regexp.MustCompile(`(?i)\b(?:`+strings.ReplaceAll(u.phrase, " ", `\s+`)+`)\b`))
	}
	return forms
}()

// unclearIn are the unclear phrases of a text with their lines, each with what to write
// instead.
func unclearIn(text string) []mention {
	var found []mention
	for i, u := range unclear {
		for _, at := range unclearForms[i].FindAllStringIndex(text, -1) {
			phrase := strings.Join(strings.Fields(text[at[0]:at[1]]), " ")
			found = append(found, mention{
				text: `"` + phrase + `" makes readers stop; write ` + u.instead,
				line: 1 + strings.Count(text[:at[0]], "\n"),
			})
		}
	}
	return found
}

// codeSpans are those of a paragraph, which may go over the end of a line.
var codeSpans = regexp.MustCompile("`[^`\n]+(?:\n[^`\n]+)?`")

// proseOf is a page without its blocks and spans of code, with the same lines.
func proseOf(text string) string {
	lines := strings.Split(text, "\n")
	closing := ""
	for i, line := range lines {
		mark := fence.FindStringSubmatch(line)
		switch {
		case mark == nil && closing == "":
			continue
		case mark != nil && closing == "":
			closing = mark[1]
		case mark != nil && strings.HasPrefix(mark[1], closing):
			closing = ""
		}
		lines[i] = ""
	}
	return codeSpans.ReplaceAllStringFunc(strings.Join(lines, "\n"), func(span string) string {
		return "code" + strings.Repeat("\n", strings.Count(span, "\n"))
	})
}

func TestProseOf(t *testing.T) {
	page := "One of `which a\nword` line.\n\n```sh\nwhoever\n```\nEnd of `x` which is."
	if got, want := proseOf(page), "One of code\n line.\n\n\n\n\nEnd of code which is."; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

func TestUnclearIn(t *testing.T) {
	for text, want := range map[string]int{
		"Calls that wait for an instance.":               0,
		"A kubelet, and the room on its nodes.":          0,
		"Whoever calls\n  is told.":                      2,
		"desired is how many there are\n  to be":         1,
		"Births of instances, as their agents say":       2,
		"Seconds since the last reload. Heed the limit.": 1,
	} {
		if found := unclearIn(text); len(found) != want {
			t.Errorf("%q: %v, want %d", text, found, want)
		}
	}
}
