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
	estimatesName = "estimates.json"
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
	known, err := file.OpenEstimates(filepath.Join(dataDir, estimatesName))
	if err != nil {
		log.Warn("estimates of functions cannot be read; they start from zero", "err", err)
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
			l.log.Warn("estimates of functions cannot be stored", "err", err)
		}
	}
	return nil
}
