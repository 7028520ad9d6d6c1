package process

import (
	"cmp"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/windlass-dev/windlass/pkg/invocation"
	"github.com/windlass-dev/windlass/pkg/provisioner/process/instancelog"
)

// keptLogs is how many ended instances' logs are kept per function.
const keptLogs = 20

// pruneLogs deletes the oldest logs of a function beyond the number to keep. live returns the
// instances that still write.
func pruneLogs(dataDir string, key invocation.FunctionKey, live func() map[invocation.CID]bool) error {
	dir := instancelog.Dir(dataDir, key)
	written, err := lastWritten(dir)
	if err != nil {
		return err
	}
	// Called after the folder was read, so that every seen file of a live instance is known to
	// be live.
	for cid := range live() {
		delete(written, cid)
	}
	var errs []error
	for _, cid := range surplus(written, keptLogs) {
		for _, name := range []string{instancelog.FunctionFile(cid), instancelog.AgentFile(cid), instancelog.TimesFile(cid)} {
			if err := os.Remove(filepath.Join(dir, name)); err != nil && !errors.Is(err, fs.ErrNotExist) {
				errs = append(errs, err)
			}
		}
	}
	return errors.Join(errs...)
}

// lastWritten says when each instance wrote its last line.
func lastWritten(dir string) (map[invocation.CID]time.Time, error) {
	entries, err := os.ReadDir(dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	written := map[invocation.CID]time.Time{}
	for _, e := range entries {
		cid, ok := instancelog.FileCID(e.Name())
		if !ok {
			continue
		}
		info, err := e.Info()
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, err
		}
		if info.ModTime().After(written[cid]) {
			written[cid] = info.ModTime()
		}
	}
	return written, nil
}

// surplus are the instances beyond keep, the longest ended first.
func surplus(written map[invocation.CID]time.Time, keep int) []invocation.CID {
	if len(written) <= keep {
		return nil
	}
	cids := make([]invocation.CID, 0, len(written))
	for cid := range written {
		cids = append(cids, cid)
	}
	slices.SortFunc(cids, func(a, b invocation.CID) int {
		return cmp.Or(written[a].Compare(written[b]), strings.Compare(string(a), string(b)))
	})
	return cids[:len(cids)-keep]
}
