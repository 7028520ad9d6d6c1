package demo

import (
	"errors"
	"strings"
	"testing"
)

func TestA7ADemoFailsOnlyWhereItIsAskedToCheck(t *testing.T) {
	missed := []string{"51 of 670 calls were cold starts"}
	if text, err := resultText(missed, false); err != nil || strings.Contains(text, "FAILED") {
		t.Errorf("a demo ended with %q, %v", text, err)
	}
	if text, err := resultText(missed, true); !errors.Is(err, ErrFailed) || !strings.Contains(text, "FAILED: 51 of 670") {
		t.Errorf("a check that missed its goals ended with %q, %v", text, err)
	}
	if text, err := resultText(nil, true); err != nil || !strings.Contains(text, "none was lost") {
		t.Errorf("a check that met its goals ended with %q, %v", text, err)
	}
}

func TestA7ADemoSaysWhichTraceItReplays(t *testing.T) {
	if text := source(""); !strings.Contains(text, "synthetic") {
		t.Errorf("without a folder: %q", text)
	}
	if text := source("traces/azure"); !strings.Contains(text, "Azure Functions in traces/azure") {
		t.Errorf("with a folder: %q", text)
	}
}

func TestExamplesWhoseLanguageIsNotInstalledAreLeftOut(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	functions, leftOut, err := examples("../../examples")
	if err != nil {
		t.Fatal(err)
	}
	for _, fn := range functions {
		if fn.Name == "hello" || fn.Name == "clock" || fn.Name == "markdown" {
			t.Errorf("%s is called, and its language is not installed", fn.Name)
		}
	}
	for _, want := range []string{"hello (python3 is not on PATH", `clock (exec: "python3"`, "markdown ("} {
		if !strings.Contains(strings.Join(leftOut, "\n"), want) {
			t.Errorf("%q does not name %s", leftOut, want)
		}
	}
}
