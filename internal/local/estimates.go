package local

import (
	"context"
	"log/slog"
	"path/filepath"
	"time"

	"github.com/windlass-dev/windlass/pkg/catalog/file"
	"github.com/windlass-dev/windlass/pkg/scheduler"
)

const (
	learntFile = "learnt.json"
	// persistInterval is how often the estimates are written, if they changed enough.
	persistInterval = time.Minute
)

// estimatesFile keeps the estimates of execution and start times in a file.
type estimatesFile struct {
	*file.Estimates
	log *slog.Logger
}

// openEstimates reads the estimates of the last run.
func openEstimates(dataDir string, log *slog.Logger) *estimatesFile {
	known, err := file.OpenEstimates(filepath.Join(dataDir, learntFile))
	if err != nil {
		log.Warn("what was learnt of the functions cannot be read and is learnt anew", "err", err)
	}
	return &estimatesFile{known, log}
}

// persist writes the scheduler's estimates, from time to time and at the end.
func (l *estimatesFile) persist(ctx context.Context, from *scheduler.Scheduler) error {
	ticker := time.NewTicker(persistInterval)
	defer ticker.Stop()
	for ctx.Err() == nil {
		select {
		case <-ctx.Done():
		case <-ticker.C:
		}
		if err := l.Save(from.Estimates()); err != nil {
			l.log.Warn("what was learnt of the functions cannot be kept", "err", err)
		}
	}
	return nil
}
