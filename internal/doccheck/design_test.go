package doccheck

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// designFolder has one page for each decision, and README.md, which lists them.
const designFolder = "docs/design"

// designHead is how a design page begins: number and title, status, and the date of
// that status.
var designHead = regexp.MustCompile(`^# (\d{4}) ([^\n]+)\n\nStatus: (?:Proposed|Accepted|Superseded by \[\d{4}\]\((\d{4}-[a-z0-9-]+\.md)\)), \d{4}-\d{2}-\d{2}\n\n`)

func TestDesignPagesBeginWithStatusAndDate(t *testing.T) {
	index := strings.Join(strings.Fields(read(t, filepath.Join(root, designFolder, "README.md"))), " ")
	pages, err := filepath.Glob(filepath.Join(root, designFolder, "[0-9]*.md"))
	if err != nil || len(pages) < 10 {
		t.Fatalf("found only the pages %v: %v", pages, err)
	}
	for _, path := range pages {
		file := filepath.Base(path)
		head := designHead.FindStringSubmatch(read(t, path))
		if head == nil {
			t.Errorf(`%s does not begin with "# NNNN Title", an empty line, "Status: Accepted, YYYY-MM-DD" and an empty line; other statuses are Proposed and Superseded by [NNNN](NNNN-name.md)`, file)
			continue
		}
		number, title, successor := head[1], head[2], head[3]
		if !strings.HasPrefix(file, number+"-") {
			t.Errorf("%s says that it is %s", file, number)
		}
		if !strings.Contains(index, "- ["+number+" "+title+"]("+file+")") {
			t.Errorf("README.md does not list %s as [%s %s](%s)", file, number, title, file)
		}
		if successor != "" {
			checkSuccessor(t, file, number, successor)
		}
	}
}

// checkSuccessor checks that the later page links back, so that readers of either find
// the other.
func checkSuccessor(t *testing.T, file, number, successor string) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, designFolder, successor))
	if err != nil || successor <= file {
		t.Errorf("%s is superseded by %s, which must be a later page: %v", file, successor, err)
		return
	}
	if back := "Supersedes [" + number + "](" + file + ")"; !strings.Contains(string(text), back) {
		t.Errorf("%s does not say %q", successor, back)
	}
}
