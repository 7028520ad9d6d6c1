package archtest

import (
	"fmt"
	"go/ast"
	"go/token"
	"slices"
	"strings"
	"testing"
)

// home finds the place of a package: the listed folder nearest to it, and the
// number of its row.
func home(pkg string) (folder string, row int, ok bool) {
	for i, r := range rows {
		for _, listed := range r.packages {
			if under(pkg, listed) && len(listed) > len(folder) {
				folder, row, ok = listed, i, true
			}
		}
	}
	return folder, row, ok
}

func TestEveryRuleNamesPackagesThatExist(t *testing.T) {
	all := packages(t)
	exists := func(rule, pkg string) {
		if _, ok := all[pkg]; !ok {
			t.Errorf("%s: there is no package %s", rule, pkg)
		}
	}
	for _, r := range rows {
		for _, pkg := range r.packages {
			exists("row "+r.name, pkg)
		}
	}
	for _, s := range sideways {
		exists("sideways", s.from)
		exists("sideways", s.to)
	}
	for _, o := range only {
		exists("only", o.pkg)
	}
	for _, u := range unlinked {
		exists("unlinked", u.pkg)
		for _, banned := range u.banned {
			if !strings.Contains(banned, ".") {
				exists("unlinked from "+u.pkg, banned)
			}
		}
	}
}

func TestEveryPackageHasAPlace(t *testing.T) {
	for pkg := range packages(t) {
		if _, _, ok := home(pkg); !ok {
			t.Errorf("package %s stands in no row of layers_test.go: put it where it belongs", pkg)
		}
	}
}

func TestPackagesImportFromRowsAbove(t *testing.T) {
	used := map[string]bool{}
	eachImport(t, func(file sourceFile, pkg, imported string) {
		folder, row, _ := home(pkg)
		importedFolder, importedRow, ok := home(imported)
		if !ok || importedRow < row || importedFolder == folder || (importedRow == row && under(pkg, imported)) {
			return
		}
		if importedRow == row {
			for _, s := range sideways {
				if under(pkg, s.from) && under(imported, s.to) {
					used[s.from+s.to] = true
					return
				}
			}
			t.Errorf("%s imports %s: both are in row %q, and sideways does not allow it", file.path, imported, rows[row].name)
			return
		}
		t.Errorf("%s imports %s: row %q may not import from row %q", file.path, imported, rows[row].name, rows[importedRow].name)
	})
	for _, s := range sideways {
		if !used[s.from+s.to] {
			t.Errorf("%s no longer imports %s: remove this permission", s.from, s.to)
		}
	}
}

func TestPackagesImportOnlyWhatTheyMay(t *testing.T) {
	eachImport(t, func(file sourceFile, pkg, imported string) {
		if standard(imported) {
			return
		}
		folder, _, _ := home(pkg)
		for _, o := range only {
			allowed := func(path string) bool { return under(imported, path) }
			if o.pkg == folder && !under(imported, folder) && !slices.ContainsFunc(o.imports, allowed) {
				t.Errorf("%s imports %s, but %s may import only %s: %s",
					file.path, imported, folder, strings.Join(append([]string{"the standard library"}, o.imports...), ", "), o.reason)
			}
		}
	})
}

func TestEveryPurePackageSaysWhatItMayImport(t *testing.T) {
	for _, pkg := range pure() {
		if !slices.ContainsFunc(only, func(o allowance) bool { return o.pkg == pkg }) {
			t.Errorf("%s is pure but has no row in only", pkg)
		}
	}
}

func TestPureCodeReadsOnlyItsArguments(t *testing.T) {
	for pkg, files := range packages(t) {
		if folder, _, _ := home(pkg); !slices.Contains(pure(), folder) {
			continue
		}
		for _, file := range files {
			if file.isTest() {
				continue
			}
			for _, imported := range file.imports(t) {
				if reason, banned := impure[imported]; banned {
					t.Errorf("%s imports %s, but %s is pure: %s", file.path, imported, pkg, reason)
				}
			}
			for imported, names := range hidden {
				file.mentions(imported, names, func(name string, at token.Position) {
					t.Errorf("%s:%d mentions %s, but %s is pure: take the value as an argument", file.path, at.Line, name, pkg)
				})
			}
			ast.Inspect(file.ast, func(n ast.Node) bool {
				if stmt, ok := n.(*ast.GoStmt); ok {
					t.Errorf("%s:%d starts a goroutine, but %s is pure", file.path, file.fset.Position(stmt.Pos()).Line, pkg)
				}
				return true
			})
		}
	}
}

func TestTestsDoNotSleep(t *testing.T) {
	for _, files := range packages(t) {
		for _, file := range files {
			// In a bubble of testing/synctest a sleep moves the bubble's clock
			// and takes no time.
			if !file.isTest() || slices.Contains(file.imports(t), "testing/synctest") {
				continue
			}
			file.mentions("time", []string{"Sleep"}, func(_ string, at token.Position) {
				t.Errorf("%s:%d sleeps: wait for what should happen, or use testing/synctest", file.path, at.Line)
			})
		}
	}
}

// pure lists the folders in which code is a function of its arguments.
func pure() []string {
	for _, r := range rows {
		if r.name == "pure" {
			return append([]string{"pkg/invocation", "internal/schedule"}, r.packages...)
		}
	}
	panic(fmt.Sprintf("no row is named pure: %v", rows))
}

// eachImport calls visit for every import of every file that is not a test.
func eachImport(t *testing.T, visit func(file sourceFile, pkg, imported string)) {
	t.Helper()
	for pkg, files := range packages(t) {
		for _, file := range files {
			if file.isTest() {
				continue
			}
			for _, imported := range file.imports(t) {
				visit(file, pkg, imported)
			}
		}
	}
}

// standard tells whether an import path is of the standard library, whose first
// element alone has no dot; local paths are told apart by their place.
func standard(imported string) bool {
	first, _, _ := strings.Cut(imported, "/")
	_, _, ours := home(imported)
	return !ours && !strings.Contains(first, ".")
}
