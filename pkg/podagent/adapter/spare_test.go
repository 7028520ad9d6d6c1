package adapter

import (
	"io/fs"
	"path/filepath"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func TestAnAssignmentNamesWhatIsWrong(t *testing.T) {
	for want, change := range map[string]func(*Assignment){
		"":                   func(*Assignment) {},
		"namespace":          func(a *Assignment) { a.Namespace = "" },
		"and function":       func(a *Assignment) { a.Function = "" },
		"concurrency is 0":   func(a *Assignment) { a.Concurrency = 0 },
		`variable "A=B"`:     func(a *Assignment) { a.Variables[0].Name = "A=B" },
		`variable "A"`:       func(a *Assignment) { a.Variables[0].Value = "\x00" },
		`variable ""`:        func(a *Assignment) { a.Variables[0].Name = "" },
		`file "../app.py"`:   func(a *Assignment) { a.Files[0].Path = "../app.py" },
		`file "a/../../b"`:   func(a *Assignment) { a.Files[0].Path = "a/../../b" },
		`file "/etc/passwd"`: func(a *Assignment) { a.Files[0].Path = "/etc/passwd" },
		`file "."`:           func(a *Assignment) { a.Files[0].Path = "." },
		`file ""`:            func(a *Assignment) { a.Files[0].Path = "" },
		`file "a\\b"`:        func(a *Assignment) { a.Files[0].Path = `a\b` },
		"more than 2097152":  func(a *Assignment) { a.Files[0].Content = make([]byte, MaxAssignment) },
	} {
		a := Assignment{
			Namespace: "shop", Function: "hello", Concurrency: 1,
			Variables: []Variable{{Name: "A", Value: "=b"}}, Files: []File{{Path: "pkg/app.py", Content: []byte("x")}},
		}
		change(&a)
		err := a.Validate()
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%v, want %q", err, want)
		}
	}
}

func TestFilesOfAnAssignmentStayBelowTheirFolder(t *testing.T) {
	parts := rapid.SampledFrom([]string{"a", "..", ".", "", "/", "\\", "b.py", "...", "\x00"})
	rapid.Check(t, func(t *rapid.T) {
		path := strings.Join(rapid.SliceOf(parts).Draw(t, "path"), "/")
		a := Assignment{Namespace: "n", Function: "f", Concurrency: 1, Files: []File{{Path: path}}}
		if a.Validate() != nil {
			return
		}
		clean := filepath.Join("/task", filepath.FromSlash(path))
		if !strings.HasPrefix(clean, "/task/") || !fs.ValidPath(path) || strings.Contains(path, `\`) {
			t.Errorf("%q was accepted", path)
		}
	})
}
