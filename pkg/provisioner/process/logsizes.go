package process

import (
	"os"
	"sync"

	"github.com/windlass-dev/windlass/pkg/invocation"
)

// logSizes says how long the logs of running instances are. Every call of a local Windlass asks, and
// the way to an open file is much shorter than that along its path. It is safe for concurrent use.
type logSizes struct {
	mu   sync.RWMutex
	open map[logName]*os.File
}

// logName names a log as its path does.
type logName struct {
	function invocation.FunctionKey
	cid      invocation.CID
}

func (s *logSizes) track(name logName, log *os.File) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.open[name] = log
}

// untrack drops a log, which may be closed after that.
func (s *logSizes) untrack(name logName) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.open, name)
}

// LogSize returns how much is in the log of a function's instance; false if the instance does not
// run.
func (d *Driver) LogSize(function invocation.FunctionKey, cid invocation.CID) (size int64, runs bool) {
	d.logSizes.mu.RLock()
	defer d.logSizes.mu.RUnlock()
	log, runs := d.logSizes.open[logName{function, cid}]
	if !runs {
		return 0, false
	}
	return sizeOf(log)
}
