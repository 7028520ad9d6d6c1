package main

import (
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/windlass-dev/windlass/test/faults/verdict"
	"github.com/windlass-dev/windlass/test/lab"
)

// runnerAt runs rows without a lab, with what functions would write into the run log.
func runnerAt(t *testing.T) (r *runner, write func(text string)) {
	path := filepath.Join(t.TempDir(), "runs")
	write = func(text string) {
		file, err := os.OpenFile(path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
		if err != nil {
			t.Fatal(err)
		}
		defer file.Close()
		fmt.Fprint(file, text)
	}
	return &runner{lab: &lab.Lab{RunLog: path}}, write
}

func TestNoCallOfARecoveryMayBeExecutedTwice(t *testing.T) {
	r, write := runnerAt(t)
	var s faultEnv
	config := at(t, echo)
	config.Name = "F2.1.r1"
	if call := s.probe(t.Context(), config); !call.Succeeded() {
		t.Fatalf("the call ended as %+v", call)
	}
	write("began F2.1.r1-1 i1 a 10\n")
	write("began F2.1.r1-1 i1 b 11\n")
	report, err := r.judge(&s, nothing())
	if err != nil || report.Duplicated != 1 {
		t.Errorf("two executions come to %+v, %v", report, err)
	}
}

func TestACallerOfARecoveryMayGiveUp(t *testing.T) {
	over := make(chan struct{})
	defer close(over)
	config := at(t, func(http.ResponseWriter, *http.Request) { <-over })
	config.Patience = 10 * time.Millisecond
	r, write := runnerAt(t)
	var s faultEnv
	s.probe(t.Context(), config)
	write("began t-1 i1 a 10\n")
	if report, err := r.judge(&s, nothing()); err != nil || !report.Kept() {
		t.Errorf("held against Windlass: %q, %v", report.Faults, err)
	}
}

func TestTheRunLogIsReadAsFarAsItsLinesAreWhole(t *testing.T) {
	r, write := runnerAt(t)
	write("began n1 i1 a 10\nbegan n2 i2")
	if runs, err := r.newRuns(); err != nil || len(runs) != 1 {
		t.Errorf("read %+v, %v; want n1", runs, err)
	}
}

func TestExecutionsAfterTheLastRowAreHeldAgainstWindlass(t *testing.T) {
	r, write := runnerAt(t)
	s := faultEnv{forbidden: map[string]int64{"n1": 5}}
	write("began n2 i2 a 10\n")
	if report, err := r.judge(&s, nothing()); err != nil || !report.Kept() {
		t.Fatal(report.Faults, err)
	}
	write("began n1 i1 a 10\n")
	if report, err := r.judge(&faultEnv{}, nothing()); err != nil || !strings.Contains(strings.Join(report.Faults, "\n"), "late: n1") {
		t.Errorf("held against Windlass: %q, %v", report.Faults, err)
	}
}

func TestFiguresFailIfAPromiseWasBroken(t *testing.T) {
	for name, test := range map[string]struct {
		faults []string
		status int
	}{"kept": {nil, 0}, "broken": {[]string{"lost: one"}, 1}} {
		t.Run(name, func(t *testing.T) {
			r := runner{out: io.Discard}
			r.counts("kill", verdict.Report{Faults: test.faults})
			if status := r.status(); status != test.status {
				t.Errorf("the status is %d, want %d", status, test.status)
			}
		})
	}
}
