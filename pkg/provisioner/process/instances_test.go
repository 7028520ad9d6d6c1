package process

import (
	"log/slog"
	"slices"
	"testing"

	"github.com/windlass-dev/windlass/pkg/provisioner"
)

// logLines is a writer that tells of what is written.
type logLines chan string

func (h logLines) Write(p []byte) (int, error) {
	h <- string(p)
	return len(p), nil
}

func TestM3AnInstanceIsLookedAfterUntilItsExitIsHandedOver(t *testing.T) {
	th := newHarness(t, noTimeout)
	logged := make(logLines, 16)
	th.log, th.exits = slog.New(slog.NewTextHandler(logged, nil)), make(chan provisioner.Exit)
	want := []provisioner.Key{{FunctionUID: testUID, CID: "c-1"}}
	_, agent := th.startInstance("c-1")
	if got := th.Instances(); !slices.Equal(got, want) {
		t.Errorf("looks after %v, want %v", got, want)
	}
	<-logged // that it was started
	agent.send("exit 0")
	<-logged // that it has ended
	if got := th.Instances(); !slices.Equal(got, want) {
		t.Errorf("looks after %v while nobody has heard of its end, want %v", got, want)
	}
	if live := th.liveCIDs(testKey()); len(live) != 0 {
		t.Errorf("the logs of %v are kept as if it ran", live)
	}
	th.exit()
	th.close()
	if got := th.Instances(); len(got) != 0 {
		t.Errorf("looks after %v in the end", got)
	}
}
