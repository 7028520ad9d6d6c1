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
