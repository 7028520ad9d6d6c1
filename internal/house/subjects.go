package main

import (
	"fmt"
	"os/exec"
	"strings"
)

const (
	// maxSubject is the length of a commit's subject, in bytes.
	maxSubject = 72
	// since is the commit after which the bound holds.
	since = "297bc31e"
)

// longSubjects are the commits since then whose subject is too long. Outside of a git
// checkout, and in a clone that does not reach back that far, there is nothing to measure,
// and the error says so.
func longSubjects(root string) ([]figure, error) {
	out, err := exec.Command("git", "-C", root, "log", "--no-merges", "--format=%h %s", since+"..HEAD").Output()
	if err != nil {
		return nil, fmt.Errorf("commit subjects are not measured: no git checkout with commit %s here: %w", since, err)
	}
	var long []figure
	for line := range strings.Lines(string(out)) {
		commit, subject, _ := strings.Cut(strings.TrimSpace(line), " ")
		if len(subject) > maxSubject {
			long = append(long, figure{name: commit, n: len(subject), what: subject})
		}
	}
	return long, nil
}
