package main

import (
	"os"
	"strings"
	"testing"

	"github.com/windlass-dev/windlass/pkg/gateway/problems"
)

func TestThePageFollowsTheList(t *testing.T) {
	page, err := os.ReadFile("../../docs/problems.md")
	if err != nil {
		t.Fatal(err)
	}
	var want strings.Builder
	if err := write(&want, problems.All()); err != nil {
		t.Fatal(err)
	}
	if string(page) != want.String() {
		t.Error(`docs/problems.md does not follow pkg/gateway/problems: run "make generate"`)
	}
}
