package local

import (
	"errors"
	"io/fs"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/windlass-dev/windlass/api/v1alpha1"
	"github.com/windlass-dev/windlass/pkg/nodeagent"
	"github.com/windlass-dev/windlass/pkg/nodeagent/callorder"
	"github.com/windlass-dev/windlass/pkg/nodeagent/cgroups"
	"github.com/windlass-dev/windlass/pkg/provisioner"
)

// A node scheduler is closed by its run, and again by the Close of its Windlass. By then the
// guardian may have the journal.
func TestANodeSchedulerGivesItsJournalUpOnce(t *testing.T) {
	journal, err := cgroups.OpenJournal(filepath.Join(t.TempDir(), "node", "bands"))
	if err != nil {
		t.Fatal(err)
	}
	s := newNodeScheduler(NodeScheduling{}, slog.New(slog.DiscardHandler))
	s.journal = journal
	if err := s.close(); err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(journal.Path()); err != nil {
		t.Fatal(err)
	}
	if err := s.close(); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(journal.Path()); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the journal was written again: %v", err)
	}
}

// A function's process can be kept back without its agent saying where it is, and only if that is asked for.
func TestAFunctionOfLocalModeIsKeptBack(t *testing.T) {
	has := cgroups.Detect(cgroups.Options{Create: true}).Holding()
	if os.Getuid() != 0 || !has.Freezer || has.Waits == cgroups.NoWaits {
		t.Skipf("only root may create control groups, and here there is: %s", has)
	}
	for _, on := range []bool{false, true} {
		s := newNodeScheduler(NodeScheduling{Order: callorder.SERPT, Slice: callorder.Slice{Rule: callorder.SliceAuto}, CoLocation: on}, slog.New(slog.DiscardHandler))
		if err := s.open(t.TempDir(), nil); err != nil {
			t.Fatal(err)
		}
		command := exec.Command("sleep", "60")
		if err := command.Start(); err != nil {
			t.Fatal(err)
		}
		function := &v1alpha1.Function{}
		function.Namespace, function.Name, function.UID = "default", "f", "u-1"
		spec := provisioner.InstanceSpec{Function: function, CID: "c", Token: "secret"}
		s.Started(spec, command.Process.Pid)
		is, err := s.Identify(t.Context(), nodeagent.Hello{Token: "secret", Namespace: "default", Function: "f", Name: "c"}, nil)
		if err != nil {
			t.Fatal(err)
		}
		if !on && (is.OpenHold != nil || is.Waited != nil) {
			t.Error("it is kept back, and nobody has asked for that")
		}
		if on {
			stopAndGoOn(t, is, s.journal.Path())
		}
		_, _ = command.Process.Kill(), command.Wait()
		if err := is.Group.Close(); err != nil {
			t.Error(err)
		}
		s.Ended(spec)
		if err := s.close(); err != nil {
			t.Error(err)
		}
	}
}

// stopAndGoOn freezes an instance and lets it go.
func stopAndGoOn(t *testing.T, is nodeagent.Instance, journal string) {
	t.Helper()
	if waited, err := is.Waited(); err != nil || waited < 0 || waited > time.Minute {
		t.Errorf("it has waited %s, %v", waited, err)
	}
	hold, err := is.OpenHold()
	if err != nil {
		t.Fatal(err)
	}
	held := func() bool {
		text, err := os.ReadFile(journal)
		return err == nil && strings.Contains(string(text), "held ")
	}
	if err := hold.SetFrozen(true); err != nil || !held() {
		t.Errorf("%v; it is in the journal: %v", err, held())
	}
	if err := hold.Close(); err != nil {
		t.Error(err)
	}
}
