package main

import (
	"strings"
	"testing"
)

func TestThePageSaysWhatItsRoundsCannotShow(t *testing.T) {
	all := []change{{on: "2026-11-29", rows: []string{"F1", "F2"}, was: "nothing broke"}, {on: "2026-11-29", rows: []string{"F3"}, was: "all broke"}}
	old := round{Date: "2026-11-28", Rows: []record{{Row: "F2"}}}
	if text := unseen([]round{old}, all); !strings.Contains(text, "- F1, F2, before 2026-11-29: nothing broke.\n") || strings.Contains(text, "all broke") {
		t.Errorf("the page says %q", text)
	}
	old.Date = "2026-11-29"
	if text := unseen([]round{old}, all); text != "" {
		t.Errorf("the page says %q of rounds that show everything", text)
	}
	if text := unseen([]round{{Date: "2026-11-28"}}, []change{{on: "2026-11-29", was: "less was seen"}}); !strings.Contains(text, "- All rows, before 2026-11-29: less was seen.\n") {
		t.Errorf("the page says %q", text)
	}
}

func TestChangesAreOfRowsThatThereAre(t *testing.T) {
	for _, c := range changes() {
		for _, id := range c.rows {
			if _, err := choose(table(), id); err != nil {
				t.Error(err)
			}
		}
	}
}
