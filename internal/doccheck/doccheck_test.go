package doccheck

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// root is the folder of the module, from the folder of this test.
const root = "../.."

// homeFolder matches paths below somebody's home folder.
var homeFolder = regexp.MustCompile(`(?:^|[\s"'(=:` + "`" + `])((?:/home|/Users)/[A-Za-z][\w.-]*|/root/[\w.-]+|[A-Z]:\\Users\\\w+)`)

func TestLinksLeadSomewhere(t *testing.T) {
	eachPage(t, func(t *testing.T, path, text string) {
		for _, link := range parse(text).links {
			target, fragment, _ := strings.Cut(link.text, "#")
			if strings.Contains(target, "://") || strings.HasPrefix(target, "mailto:") {
				continue
			}
			file := path
			if target != "" {
				file = filepath.Join(filepath.Dir(path), filepath.FromSlash(target))
			}
			if strings.HasPrefix(target, "/") {
				t.Errorf("line %d: link %s begins with a slash: write it from the folder of this page", link.line, link.text)
				continue
			}
			if _, err := os.Stat(file); err != nil {
				t.Errorf("line %d: link %s leads nowhere: %v", link.line, link.text, err)
				continue
			}
			if fragment != "" && strings.HasSuffix(file, ".md") && !parse(read(t, file)).anchors[fragment] {
				t.Errorf("line %d: link %s: the page has no heading #%s", link.line, link.text, fragment)
			}
		}
	})
}

func TestMakeTargetsExist(t *testing.T) {
	targets := map[string]bool{}
	for _, rule := range regexp.MustCompile(`(?m)^([a-z][a-z0-9-]*):(?:[^=]|$)`).FindAllStringSubmatch(read(t, filepath.Join(root, "Makefile")), -1) {
		targets[rule[1]] = true
	}
	if !targets["test"] {
		t.Fatalf("found no target test in the Makefile, only %v", targets)
	}
	eachPage(t, func(t *testing.T, _, text string) {
		for _, command := range parse(text).commands {
			for _, target := range makeTargets(command.text) {
				if !targets[target] {
					t.Errorf("line %d: the Makefile has no target %s", command.line, target)
				}
			}
		}
	})
}

func TestPathsHoldOnEveryMachine(t *testing.T) {
	checkout, err := filepath.Abs(root)
	if err != nil {
		t.Fatal(err)
	}
	eachPage(t, func(t *testing.T, _, text string) {
		for i, line := range strings.Split(text, "\n") {
			if found := homeFolder.FindStringSubmatch(line); found != nil {
				t.Errorf("line %d: %s is a path on one person's machine", i+1, found[1])
			}
			// A checkout near the root of the file system has too plain a name.
			if strings.Count(checkout, "/") > 1 && strings.Contains(line, checkout) {
				t.Errorf("line %d: %s is where this checkout happens to be", i+1, checkout)
			}
		}
	})
}

// eachPage runs check on every Markdown file of the project.
func eachPage(t *testing.T, check func(t *testing.T, path, text string)) {
	t.Helper()
	found := 0
	err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name := entry.Name()
		if entry.IsDir() && path != root && (strings.HasPrefix(name, ".") && name != ".github" || name == "node_modules" || name == "testdata") {
			return filepath.SkipDir
		}
		if entry.IsDir() || !strings.HasSuffix(name, ".md") {
			return nil
		}
		found++
		relative, err := filepath.Rel(root, path)
		if err != nil {
			return err
		}
		t.Run(filepath.ToSlash(relative), func(t *testing.T) { check(t, path, read(t, path)) })
		return nil
	})
	if err != nil {
		t.Fatalf("looking for Markdown files: %v", err)
	}
	if found == 0 {
		t.Fatalf("found no Markdown file below %s", root)
	}
}

func read(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
