package local

import (
	"errors"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"testing"

	"github.com/windlass-dev/windlass/pkg/nodeagent/cgroups"
)

// A node scheduler is closed by its Run, and again by the Close of a Windlass whose Run failed. By
// then the journal may belong to another process.
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
