//go:build apiserver

package chart

import (
	"os"
	"path/filepath"
	"regexp"
	"testing"
)

func TestNoProcedureRestartsMembersOneAfterTheOther(t *testing.T) {
	restart := regexp.MustCompile(`rollout restart \S*(statefulset|sts).*`)
	if found := restart.FindString(page(t, filepath.Join(chartDir, "README.md"))); found != "" {
		t.Errorf("README.md says %q, which ends with the first member after a change of the CA", found)
	}
}

// page is the text of a page of the documentation.
func page(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
