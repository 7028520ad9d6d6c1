package archtest

import (
	"go/build/constraint"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// builtin are tags that Go sets itself.
var builtin = []string{"linux", "race"}

func TestARuleOfTheMakefileRunsEachTestWithATag(t *testing.T) {
	root := moduleRoot(t)
	rules := taggedRules(t, root)
	for folder, files := range packages(t) {
		for _, file := range files {
			if !file.isTest() {
				continue
			}
			for _, tag := range file.tags(t) {
				runs := func(r taggedRule) bool { return r.runs(tag, folder) }
				if !slices.Contains(builtin, tag) && !slices.ContainsFunc(rules, runs) {
					t.Errorf("%s has the build tag %s, and no rule of the Makefile names its package with that", file.path, tag)
				}
			}
		}
	}
}

// tags are what the build constraint of f mentions.
func (f sourceFile) tags(t *testing.T) (tags []string) {
	t.Helper()
	for _, line := range f.constraints() {
		if !constraint.IsGoBuild(line) {
			continue
		}
		parsed, err := constraint.Parse(line)
		if err != nil {
			t.Fatalf("%s: %v", f.path, err)
		}
		parsed.Eval(func(tag string) bool {
			tags = append(tags, tag)
			return true
		})
	}
	return tags
}

// taggedRule is a go command with build tags.
type taggedRule struct {
	tags, packages []string
	// all are the packages with tests of the tags, but for those of except.
	all    bool
	except []string
}

func (r taggedRule) runs(tag, folder string) bool {
	named := slices.Contains(r.packages, folder) || r.all && !slices.Contains(r.except, folder)
	return named && slices.Contains(r.tags, tag)
}

var (
	script    = regexp.MustCompile(`[\w/-]+\.sh\b`)
	withTags  = regexp.MustCompile(`-tags (\w+(?:,\w+)*)`)
	named     = regexp.MustCompile(`(?:^|[\s,])(\.(?:/[\w/-]+)?)(?:$|[\s,;)])`)
	filtered  = regexp.MustCompile(`filter-out ([^,]*),`)
	continued = regexp.MustCompile(`\\\n\s*`)
)

// taggedRules are those of the Makefile and of the scripts that it names, which go to their own folder.
func taggedRules(t *testing.T, root string) (rules []taggedRule) {
	t.Helper()
	read := func(name string) string {
		text, err := os.ReadFile(filepath.Join(root, name))
		if err != nil {
			t.Fatal(err)
		}
		return continued.ReplaceAllString(string(text), " ")
	}
	makefile := read("Makefile")
	rules = parseTaggedRules(".", makefile)
	for _, name := range script.FindAllString(makefile, -1) {
		rules = append(rules, parseTaggedRules(path.Dir(name), read(name))...)
	}
	if len(rules) == 0 {
		t.Fatal("the Makefile has no rule with -tags")
	}
	return rules
}

// parseTaggedRules finds them in what is run in a folder.
func parseTaggedRules(folder, text string) (rules []taggedRule) {
	for line := range strings.Lines(text) {
		tags := withTags.FindStringSubmatch(line)
		if tags == nil {
			continue
		}
		rule := taggedRule{tags: strings.Split(tags[1], ","), all: strings.Contains(line, "$(call tagged,"+tags[1]+")")}
		if out := filtered.FindStringSubmatch(line); out != nil {
			rule.except = namedIn(folder, out[1])
			line = strings.Replace(line, out[0], "", 1)
		}
		rule.packages = namedIn(folder, line)
		rules = append(rules, rule)
	}
	return rules
}

// namedIn are the folders that words of text name.
func namedIn(folder, text string) (packages []string) {
	for _, match := range named.FindAllStringSubmatch(text, -1) {
		packages = append(packages, path.Join(folder, match[1]))
	}
	return packages
}

func TestRulesWithTags(t *testing.T) {
	rules := parseTaggedRules("test/chart", "go test ./pkg/a\n"+
		"go test -tags x,y -run Z \"$@\" .\n"+
		"$(call gotest,-tags z,$(filter-out ./b,$(call tagged,z)))\n")
	for _, c := range []struct {
		tag, folder string
		want        bool
	}{
		{"x", "test/chart", true},
		{"y", "test/chart", true},
		{"x", "pkg/a", false},
		{"z", "test/chart", true},
		{"z", "test/chart/b", false},
		{"z", "pkg/a", true},
		{"x", "test/chart/b", false},
	} {
		if got := slices.ContainsFunc(rules, func(r taggedRule) bool { return r.runs(c.tag, c.folder) }); got != c.want {
			t.Errorf("that a rule runs %s in %s is %v", c.tag, c.folder, got)
		}
	}
}
