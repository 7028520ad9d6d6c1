package local

import (
	"context"
	"path/filepath"
	"time"

	"github.com/windlass-dev/windlass/pkg/catalog/file"
)

const (
	learntFile = "learnt.json"
	// keepLearntEvery is how often what was learnt is written, if it has changed.
	keepLearntEvery = time.Minute
)

// openLearnt reads what was learnt of the functions before.
func (w *Windlass) openLearnt() {
	var err error
	if w.learnt, err = file.OpenLearnt(filepath.Join(w.config.DataDir, learntFile)); err != nil {
		w.log.Warn("what was learnt of the functions cannot be read and is learnt anew", "err", err)
	}
}

// keepLearnt writes what is learnt of the functions, now and then and in the end.
func (w *Windlass) keepLearnt(ctx context.Context) error {
	ticker := time.NewTicker(keepLearntEvery)
	defer ticker.Stop()
	for ctx.Err() == nil {
		select {
		case <-ctx.Done():
		case <-ticker.C:
		}
		known := make(map[string]file.LearntOf)
		for _, of := range w.scheduler.Learnt() {
			known[of.UID] = file.LearntOf{Generation: of.Generation, Execution: of.Execution, Start: of.Start}
		}
		if err := w.learnt.Keep(known); err != nil {
			w.log.Warn("what was learnt of the functions cannot be kept", "err", err)
		}
	}
	return nil
}
