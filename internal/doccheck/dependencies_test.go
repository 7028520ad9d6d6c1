package doccheck

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var required = regexp.MustCompile(`(?m)^(?:require )?\s*([a-z0-9.-]+\.[a-z]+/\S+|[a-z.]+\.[a-z]+/\S+) v\S+$`)

func TestEveryDirectDependencyHasAReason(t *testing.T) {
	modules, err := os.ReadFile(filepath.Join(root, "go.mod"))
	if err != nil {
		t.Fatal(err)
	}
	page, err := os.ReadFile(filepath.Join(root, "docs/design/0037-dependencies.md"))
	if err != nil {
		t.Fatal(err)
	}
	direct := required.FindAllStringSubmatch(string(modules), -1)
	if len(direct) < 40 {
		t.Fatalf("go.mod has %d direct dependencies: the expression finds too few", len(direct))
	}
	known := map[string]bool{}
	for _, m := range direct {
		known["`"+m[1]+"`"] = true
		if !strings.Contains(string(page), "`"+m[1]+"`") {
			t.Errorf("docs/design/0037-dependencies.md does not say what %s is for", m[1])
		}
	}
	table, _, _ := strings.Cut(string(page), "\n## Where a library exists")
	for _, named := range regexp.MustCompile("`[a-z0-9.-]+\\.[a-z]+/[^` ]+`").FindAllString(table, -1) {
		if !known[named] && named != "`golang.org/x`" {
			t.Errorf("docs/design/0037-dependencies.md names %s, which go.mod does not require", named)
		}
	}
}
