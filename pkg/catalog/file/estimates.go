package file

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync"

	"github.com/windlass-dev/windlass/api/v1alpha1"
	"github.com/windlass-dev/windlass/pkg/autoscaler/estimate"
)

// maxEstimates bounds the file, in bytes: that is some 20,000 revisions.
const maxEstimates = 4 << 20

// Estimates keeps the execution and start times of units in one file. It is safe for
// concurrent use.
type Estimates struct {
	path string

	mu    sync.Mutex
	units map[string][]estimate.Unit // by the UIDs of their functions
}

// OpenEstimates reads the file. Estimates work without it: if the file is missing or
// unreadable they start empty. The error says that the file exists and is unusable; the result
// can be used in any case.
func OpenEstimates(path string) (*Estimates, error) {
	l := &Estimates{path: path}
	// What a crash left unfinished would lie about for ever.
	remains, _ := filepath.Glob(filepath.Join(filepath.Dir(path), "."+filepath.Base(path)+".*"+unfinished))
	for _, left := range remains {
		_ = os.Remove(left)
	}
	info, err := os.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return l, nil
	case err == nil && info.Size() > maxEstimates:
		return l, fmt.Errorf("%s: is larger than %d bytes", path, maxEstimates)
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return l, err
	}
	var units []estimate.Unit
	if err := json.Unmarshal(text, &units); err != nil {
		return l, fmt.Errorf("%s: %w", path, err)
	}
	l.units = byFunction(units)
	return l, nil
}

func byFunction(units []estimate.Unit) map[string][]estimate.Unit {
	of := make(map[string][]estimate.Unit)
	for _, u := range units {
		u.Execution, u.Start = max(0, u.Execution), max(0, u.Start)
		of[u.Function] = append(of[u.Function], u)
	}
	return of
}

// Restore returns the means of a unit, or else of other revisions of its function.
func (l *Estimates) Restore(unit *v1alpha1.Function) estimate.Means {
	l.mu.Lock()
	defer l.mu.Unlock()
	return estimate.Restore(l.units[unit.FunctionUID()], string(unit.UID))
}

// Save replaces the file's content by these units if they differ enough. It writes nothing
// that it could not read again.
func (l *Estimates) Save(units []estimate.Unit) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	of := byFunction(units)
	if !worthWriting(of, l.units) {
		return nil
	}
	text, err := json.Marshal(units)
	if err != nil {
		return err
	}
	if len(text) > maxEstimates {
		return fmt.Errorf("%s: would be larger than %d bytes", l.path, maxEstimates)
	}
	if err := writeFile(l.path, text); err != nil {
		return err
	}
	l.units = of
	return nil
}

func worthWriting(now, kept map[string][]estimate.Unit) bool {
	for uid, units := range now {
		if estimate.RecordOf(units).Differs(estimate.RecordOf(kept[uid])) {
			return true
		}
	}
	for uid := range kept {
		if len(now[uid]) == 0 {
			return true
		}
	}
	return false
}
