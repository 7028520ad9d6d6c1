package verdict_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/windlass-dev/windlass/test/faults/verdict"
)

func TestTheRunLogIsReadAsItWasWritten(t *testing.T) {
	text := "began n1 i1 a 10\nbegan n2 i2 b 11\nended n2 i2 b 12\nbegan n1 i1 c 13\ncancelled n1 i1 c 14\n"
	got, err := new(verdict.RunLog).Read(strings.NewReader(text))
	want := []verdict.Run{
		{Nonce: "n1", Invocation: "i1", CID: "a", Began: 10},
		{Nonce: "n2", Invocation: "i2", CID: "b", Began: 11, Ended: 12},
		{Nonce: "n1", Invocation: "i1", CID: "c", Began: 13, Ended: 14},
	}
	if err != nil || !slices.Equal(got, want) {
		t.Errorf("read %+v, %v; want %+v", got, err, want)
	}
}

func TestARunLogThatIsNoneIsRefused(t *testing.T) {
	for _, text := range []string{"began n1 i1 a\n", "began n1 i1 a soon\n", "ended n1 i1 a 10\n", "paused n1 i1 a 10\n"} {
		if runs, err := new(verdict.RunLog).Read(strings.NewReader(text)); err == nil {
			t.Errorf("%q was read as %+v", text, runs)
		}
	}
}

func TestAnExecutionMayEndInALaterPieceOfTheRunLog(t *testing.T) {
	var log verdict.RunLog
	if _, err := log.Read(strings.NewReader("began n1 i1 a 10\n")); err != nil {
		t.Fatal(err)
	}
	if runs, err := log.Read(strings.NewReader("ended n1 i1 a 12\n")); err != nil || len(runs) != 0 {
		t.Errorf("read %+v, %v; want none, since the execution was read before", runs, err)
	}
}
