package archtest

import (
	"encoding/json"
	"errors"
	"io"
	"os/exec"
	"slices"
	"strings"
	"testing"
)

func TestProgramsDoNotLink(t *testing.T) {
	// Reading the source makes a cached result depend on it; what the go
	// command reads in its own process does not.
	packages(t)
	graph := importGraph(t)
	for _, u := range unlinked {
		t.Run(u.pkg, func(t *testing.T) {
			for root := range graph {
				if !under(root, u.pkg) {
					continue
				}
				for _, banned := range u.banned {
					if chain := findImport(graph, root, banned); chain != nil {
						t.Errorf("%s must not link %s: %s. It does by way of %s",
							root, banned, u.reason, strings.Join(chain, " -> "))
					}
				}
			}
		})
	}
}

// importGraph tells what each package that the module needs imports, in files
// that are not tests.
func importGraph(t *testing.T) map[string][]string {
	t.Helper()
	cmd := exec.Command("go", "list", "-deps", "-json=ImportPath,Imports", "./...")
	cmd.Dir = moduleRoot(t)
	out, err := cmd.Output()
	if err != nil {
		var exit *exec.ExitError
		if errors.As(err, &exit) {
			t.Fatalf("%s: %v\n%s", cmd, err, exit.Stderr)
		}
		t.Fatalf("%s: %v", cmd, err)
	}
	graph := map[string][]string{}
	for decoder := json.NewDecoder(strings.NewReader(string(out))); ; {
		var pkg struct {
			ImportPath string
			Imports    []string
		}
		if err := decoder.Decode(&pkg); errors.Is(err, io.EOF) {
			return graph
		} else if err != nil {
			t.Fatalf("reading what %s wrote: %v", cmd, err)
		}
		for _, imported := range pkg.Imports {
			graph[local(pkg.ImportPath)] = append(graph[local(pkg.ImportPath)], local(imported))
		}
	}
}

// findImport is the shortest chain of imports from root to a package at or
// below banned, or nil.
func findImport(graph map[string][]string, root, banned string) []string {
	importer := map[string]string{root: ""}
	for queue := []string{root}; len(queue) > 0; queue = queue[1:] {
		pkg := queue[0]
		if pkg != root && under(pkg, banned) {
			var chain []string
			for ; pkg != ""; pkg = importer[pkg] {
				chain = append(chain, pkg)
			}
			slices.Reverse(chain)
			return chain
		}
		for _, imported := range graph[pkg] {
			if _, seen := importer[imported]; !seen {
				importer[imported] = pkg
				queue = append(queue, imported)
			}
		}
	}
	return nil
}

func TestFindImport(t *testing.T) {
	graph := map[string][]string{
		"main": {"a", "b"},
		"a":    {"b"},
		"b":    {"k8s.io/x/y", "k8s.iot"},
		"c":    {"k8s.iot"},
	}
	tests := map[string]struct {
		root, banned string
		want         []string
	}{
		"the shortest way is shown":                 {"main", "k8s.io", []string{"main", "b", "k8s.io/x/y"}},
		"a longer name is another one":              {"c", "k8s.io", nil},
		"a package may be below what it must avoid": {"b", "b", nil},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			if got := findImport(graph, tt.root, tt.banned); !slices.Equal(got, tt.want) {
				t.Errorf("findImport(%s, %s) = %v, want %v", tt.root, tt.banned, got, tt.want)
			}
		})
	}
}
