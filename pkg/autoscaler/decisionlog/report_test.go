package decisionlog

import (
	"testing"
	"time"
)

func TestA3WhatAFunctionWroteIsNotPublic(t *testing.T) {
	at := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	reported := Report{LastFailure: &Failure{At: at, Code: "FunctionExited", Detail: "its secret is 42"}}
	if got := reported.Public().LastFailure; got == nil || *got != (Failure{At: at, Code: "FunctionExited"}) {
		t.Errorf("public: %+v", got)
	}
	if reported.LastFailure.Detail == "" {
		t.Error("the account itself has lost it")
	}
	if got := (Report{}).Public().LastFailure; got != nil {
		t.Errorf("made up: %+v", got)
	}
}
