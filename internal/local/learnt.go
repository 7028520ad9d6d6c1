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
	// keepLearntEvery is how often what was learnt is written, if that is worth it.
	keepLearntEvery = time.Minute
)

// learnt is what is known of the functions' times, in a file.
type learnt struct {
	*file.Learnt
	log *slog.Logger
}

// openLearnt reads what was learnt of the functions before.
func openLearnt(dataDir string, log *slog.Logger) *learnt {
	known, err := file.OpenLearnt(filepath.Join(dataDir, learntFile))
	if err != nil {
		log.Warn("what was learnt of the functions cannot be read and is learnt anew", "err", err)
	}
	return &learnt{known, log}
}

// keep writes what the scheduler learns of the functions, now and then and in the end.
func (l *learnt) keep(ctx context.Context, from *scheduler.Scheduler) error {
	ticker := time.NewTicker(keepLearntEvery)
	defer ticker.Stop()
	for ctx.Err() == nil {
		select {
		case <-ctx.Done():
		case <-ticker.C:
		}
		if err := l.Keep(from.Learnt()); err != nil {
			l.log.Warn("what was learnt of the functions cannot be kept", "err", err)
		}
	}
	return nil
}
