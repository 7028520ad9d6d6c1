package doccheck

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/windlass-dev/windlass/api/v1alpha1"
)

const (
	manifestPage        = "docs/manifest.md"
	runtimesPage        = "docs/runtimes.md"
	callingPage         = "docs/calling.md"
	troubleshootingPage = "docs/troubleshooting.md"
)

func TestEveryFieldOfAManifestIsDocumented(t *testing.T) {
	for _, tt := range []struct {
		page string
		kind any
	}{
		{manifestPage, v1alpha1.FunctionSpec{}},
		{manifestPage, v1alpha1.FunctionStatus{}},
		{runtimesPage, v1alpha1.ClusterRuntimeSpec{}},
	} {
		spans := spansOf(t, tt.page)
		for _, path := range fieldPaths(reflect.TypeOf(tt.kind), "") {
			if !spans[path] && !spans[lastPart(path)] {
				t.Errorf("%s has no `%s`, a field of %T", tt.page, path, tt.kind)
			}
		}
	}
}

// What a page says of fields that are gone misleads.
func TestTheManifestPageNamesNoOtherField(t *testing.T) {
	known := map[string]bool{}
	for _, path := range fieldPaths(reflect.TypeOf(v1alpha1.FunctionSpec{}), "") {
		known[path] = true
	}
	_, table, found := strings.Cut(read(t, filepath.Join(root, manifestPage)), "## spec")
	table, _, ended := strings.Cut(table, "## status")
	if !found || !ended {
		t.Fatalf("%s has no section spec before a section status", manifestPage)
	}
	for _, row := range regexp.MustCompile("(?m)^\\| (`[^|]+) \\|").FindAllStringSubmatch(table, -1) {
		for _, span := range codeSpan.FindAllStringSubmatch(row[1], -1) {
			if !known[span[1]] {
				t.Errorf("%s tells of spec.%s, which is no field of a Function", manifestPage, span[1])
			}
		}
	}
}

func TestEveryReasonIsDocumented(t *testing.T) {
	page := read(t, filepath.Join(root, troubleshootingPage))
	reasons := constants(t, "api/v1alpha1", regexp.MustCompile(`^Reason[A-Z]`))
	if len(reasons) < 10 {
		t.Fatalf("found only the reasons %v", reasons)
	}
	for _, name := range slices.Sorted(maps.Keys(reasons)) {
		if !strings.Contains(page, "\n| `"+reasons[name]+"` |") {
			t.Errorf("%s has no row for the reason %s (v1alpha1.%s)", troubleshootingPage, reasons[name], name)
		}
	}
}

func TestEveryReasonOfADecisionIsDocumented(t *testing.T) {
	page := read(t, filepath.Join(root, "docs/cli.md"))
	reasons := constants(t, "pkg/autoscaler", regexp.MustCompile(`^Reason[A-Z]`))
	if len(reasons) < 10 {
		t.Fatalf("found only the reasons %v", reasons)
	}
	for _, name := range slices.Sorted(maps.Keys(reasons)) {
		if !strings.Contains(page, "\n| `"+reasons[name]+"` |") {
			t.Errorf("docs/cli.md has no row for the reason %s (fpcs.%s)", reasons[name], name)
		}
	}
}

func TestEveryHeaderIsDocumented(t *testing.T) {
	page := read(t, filepath.Join(root, callingPage))
	headers := constants(t, "pkg/invocation", regexp.MustCompile(`^Header[A-Z]`))
	if len(headers) < 3 {
		t.Fatalf("found only the headers %v", headers)
	}
	for name, header := range headers {
		if !strings.Contains(page, "`"+header+"`") {
			t.Errorf("%s says nothing of the header %s (invoke.%s)", callingPage, header, name)
		}
	}
}

func TestEveryConditionIsDocumented(t *testing.T) {
	page := read(t, filepath.Join(root, troubleshootingPage))
	for name, condition := range constants(t, "api/v1alpha1", regexp.MustCompile(`^Condition[A-Z]`)) {
		if !strings.Contains(page, "\n| `"+condition+"` |") {
			t.Errorf("%s has no row for the condition %s (v1alpha1.%s)", troubleshootingPage, condition, name)
		}
	}
}

// spansOf are the code spans of a page.
func spansOf(t *testing.T, page string) map[string]bool {
	t.Helper()
	spans := map[string]bool{}
	for _, span := range parse(read(t, filepath.Join(root, page))).commands {
		spans[span.text] = true
	}
	return spans
}

// fieldPaths are the paths of a type's fields that hold a value, as the
// documentation writes them: a.b, a[].b. Types of Kubernetes count as values.
func fieldPaths(of reflect.Type, at string) []string {
	switch {
	case of.Kind() == reflect.Pointer:
		return fieldPaths(of.Elem(), at)
	case of.Kind() == reflect.Slice && isGroup(of.Elem()):
		return fieldPaths(of.Elem(), at+"[]")
	case !isGroup(of):
		return []string{at}
	}
	var paths []string
	for i := range of.NumField() {
		name, _, _ := strings.Cut(of.Field(i).Tag.Get("json"), ",")
		paths = append(paths, fieldPaths(of.Field(i).Type, strings.TrimPrefix(at+"."+name, "."))...)
	}
	return paths
}

// isGroup says that a type is a group of fields of our own.
func isGroup(of reflect.Type) bool {
	return of.Kind() == reflect.Struct && of != reflect.TypeFor[v1alpha1.Duration]() && !strings.HasPrefix(of.PkgPath(), "k8s.io/")
}

// lastPart is how a table may abbreviate a path: a list by its name, and a path
// whose beginning was just given by its end.
func lastPart(path string) string {
	if list, _, isList := strings.Cut(path, "[]"); isList {
		return list
	}
	return path[max(0, strings.LastIndexByte(path, '.')):]
}

// constants are the texts of a package's constants whose name matches.
func constants(t *testing.T, folder string, name *regexp.Regexp) map[string]string {
	t.Helper()
	found := map[string]string{}
	eachFile(t, folder, func(_ string, file *ast.File) {
		for _, decl := range file.Decls {
			group, ok := decl.(*ast.GenDecl)
			if !ok || group.Tok != token.CONST {
				continue
			}
			for _, spec := range group.Specs {
				value := spec.(*ast.ValueSpec)
				for i, ident := range value.Names {
					if i < len(value.Values) && name.MatchString(ident.Name) {
						found[ident.Name] = textOf(value.Values[i])
					}
				}
			}
		}
	})
	return found
}

// eachFile parses every Go file below a folder that is not a test.
func eachFile(t *testing.T, folder string, use func(path string, file *ast.File)) {
	t.Helper()
	fset := token.NewFileSet()
	err := filepath.WalkDir(filepath.Join(root, folder), func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return err
		}
		file, err := parser.ParseFile(fset, path, nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		use(path, file)
		return nil
	})
	if err != nil {
		t.Fatalf("reading the code of %s: %v", folder, err)
	}
}

// textOf is the value of a string literal, or empty.
func textOf(e ast.Expr) string {
	literal, ok := e.(*ast.BasicLit)
	if !ok || literal.Kind != token.STRING {
		return ""
	}
	text, err := strconv.Unquote(literal.Value)
	if err != nil {
		return ""
	}
	return text
}
