package file

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/windlass-dev/windlass/api/v1alpha1"
	"github.com/windlass-dev/windlass/pkg/estimate"
)

// maxLearnt bounds the file, in bytes: that is some 30,000 functions.
const maxLearnt = 4 << 20

// LearntOf is what was learnt of one function.
type LearntOf struct {
	Execution time.Duration `json:"executionNs,omitempty"`
	Start     time.Duration `json:"startNs,omitempty"`
}

// Learnt is what was learnt of functions, by their UIDs, in one file. It may be used
// by many goroutines at a time.
type Learnt struct {
	path string

	mu   sync.Mutex
	text []byte
	of   map[string]LearntOf
}

// OpenLearnt reads what was learnt before. The file is a help and no more: without
// it, or with one that cannot be read, everything is learnt anew. The error says that
// it was there and of no use; what is returned is usable all the same.
func OpenLearnt(path string) (*Learnt, error) {
	l := &Learnt{path: path, of: make(map[string]LearntOf)}
	// What a crash left unfinished would lie about for ever.
	remains, _ := filepath.Glob(filepath.Join(filepath.Dir(path), "."+filepath.Base(path)+".*"+unfinished))
	for _, left := range remains {
		_ = os.Remove(left)
	}
	info, err := os.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return l, nil
	case err == nil && info.Size() > maxLearnt:
		return l, fmt.Errorf("%s: is larger than %d bytes", path, maxLearnt)
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return l, err
	}
	of := make(map[string]LearntOf)
	if err := json.Unmarshal(text, &of); err != nil {
		return l, fmt.Errorf("%s: %w", path, err)
	}
	l.text, l.of = text, of
	return l, nil
}

// Recall returns what was learnt of a unit's function: a new revision begins with what is
// known of the others.
func (l *Learnt) Recall(unit *v1alpha1.Function) estimate.Means {
	l.mu.Lock()
	defer l.mu.Unlock()
	known := l.of[unit.FunctionUID()]
	return estimate.Means{Execution: max(0, known.Execution), Start: max(0, known.Start)}
}

// Keep makes the file say what is learnt now, and nothing else. It writes only what
// has changed, and not a file that it would not read again.
func (l *Learnt) Keep(of map[string]LearntOf) error {
	text, err := json.Marshal(of)
	if err != nil {
		return err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if bytes.Equal(text, l.text) {
		return nil
	}
	if len(text) > maxLearnt {
		return fmt.Errorf("%s: would be larger than %d bytes", l.path, maxLearnt)
	}
	if err := write(l.path, text); err != nil {
		return err
	}
	l.text, l.of = text, of
	return nil
}
