package doccheck

import (
	"regexp"
	"strings"
	"testing"

	"github.com/windlass-dev/windlass/internal/publictexts"
)

// unclear are phrases that made readers of public texts stop, and what to write instead.
// A phrase may be an alternative of a regular expression; its case does not matter.
var unclear = []struct{ phrase, instead string }{
	{"whoever", "name the actor: the caller, the scheduler"},
	{"of which", "begin another sentence"},
	{"(is|are|was|were|be|been) told", "say who sends or sets it"},
	{"tells? of|(agent|node|pod|scheduler)s? (tell|tells|told)", "reports"},
	{"as .* agents? says?", "as reported by the agents"},
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
				t.Errorf("%s: %s: %s, in %q", g.Title, text.Of, found, text.Text)
			}
		}
	}
}

// unclearIn are the phrases of a text that are unclear, each with what to write instead.
func unclearIn(text string) []string {
	text = strings.Join(strings.Fields(text), " ")
	var found []string
	for _, u := range unclear {
		if at := regexp.MustCompile(`(?i)\b(?:` + u.phrase + `)\b`).FindString(text); at != "" {
			found = append(found, `"`+at+`" makes readers stop; write `+u.instead)
		}
	}
	return found
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
			t.Errorf("%q: %q, want %d", text, found, want)
		}
	}
}
