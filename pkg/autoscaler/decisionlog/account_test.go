package decisionlog

import (
	"testing"
	"time"
)

func TestA3WhatAFunctionWroteIsNotPublic(t *testing.T) {
	at := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	told := Account{LastFailure: &Failure{At: at, Code: "FunctionExited", Detail: "its secret is 42"}}
	if got := told.Public().LastFailure; got == nil || *got != (Failure{At: at, Code: "FunctionExited"}) {
		t.Errorf("public: %+v", got)
	}
	if told.LastFailure.Detail == "" {
		t.Error("the account itself has lost it")
	}
	if got := (Account{}).Public().LastFailure; got != nil {
		t.Errorf("made up: %+v", got)
	}
}
