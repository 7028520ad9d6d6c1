package instancelog

import (
	"bytes"
	"context"
	"errors"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/fsnotify/fsnotify"

	"github.com/windlass-dev/windlass/pkg/invocation"
)

// Line is a line that a function has written.
type Line struct {
	Function invocation.FunctionKey
	CID      invocation.CID
	At       time.Time
	Text     string
}

// stampEvery is the minimum time between two stamps of a log, which bounds their number: lines
// in between have the time of the first.
const stampEvery = time.Millisecond

// Recorder records when functions write lines, since functions write their logs themselves.
// The system notifies it when a file grows.
type Recorder struct {
	root string
	deps RecorderDeps
	// logs are by their paths.
	logs map[string]*recordedLog
}

// RecorderDeps are what a Recorder needs. Heard gets each line once it has an end, and
// must not wait; it may be nil.
type RecorderDeps struct {
	Now    func() time.Time
	OnLine func(Line)
	Log    *slog.Logger
}

// recordedLog is one log.
type recordedLog struct {
	function invocation.FunctionKey
	cid      invocation.CID
	// stamps is the number of stamps, and last the last one.
	stamps int64
	last   stamp
	// read is how much was handed on, with the beginning of a line after it.
	read    int64
	partial []byte
}

// NewRecorder makes a Recorder for the runtime's data folder. It starts nothing.
func NewRecorder(dataDir string, deps RecorderDeps) *Recorder {
	return &Recorder{root: filepath.Join(dataDir, logsFolder), deps: deps, logs: make(map[string]*recordedLog)}
}

// Run records until ctx ends. If the system cannot watch files, it logs that, and lines have
// no times.
func (r *Recorder) Run(ctx context.Context) error {
	watcher, err := fsnotify.NewWatcher()
	if err == nil {
		defer watcher.Close()
		if err = os.MkdirAll(r.root, 0o700); err == nil {
			err = r.scan(watcher, r.root, true)
		}
	}
	if err != nil {
		r.deps.Log.Warn("cannot watch the logs of functions: their lines have no times", "err", err)
		<-ctx.Done()
		return nil
	}
	for {
		select {
		case <-ctx.Done():
			return nil
		case event := <-watcher.Events:
			r.handle(watcher, event)
		case err := <-watcher.Errors:
			// Some changes were missed.
			r.deps.Log.Debug("looking at all logs of functions", "err", err)
			r.logError(r.scan(watcher, r.root, false))
		}
	}
}

func (r *Recorder) logError(err error) {
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		r.deps.Log.Warn("cannot note when functions wrote their logs", "err", err)
	}
}

func (r *Recorder) handle(watcher *fsnotify.Watcher, event fsnotify.Event) {
	switch {
	case event.Has(fsnotify.Remove), event.Has(fsnotify.Rename):
		delete(r.logs, event.Name)
	case event.Has(fsnotify.Create) && !strings.Contains(filepath.Base(event.Name), "."):
		r.logError(r.scan(watcher, event.Name, false))
	default:
		r.logError(r.recordGrowth(event.Name, false))
	}
}

// scan watches a folder and its subfolders, and reads their logs. It does not pass on existing
// lines.
func (r *Recorder) scan(watcher *fsnotify.Watcher, folder string, before bool) error {
	return filepath.WalkDir(folder, func(path string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
		case entry.IsDir():
			err = watcher.Add(path)
		default:
			err = r.recordGrowth(path, before)
		}
		if errors.Is(err, fs.ErrNotExist) {
			return nil // It was pruned meanwhile.
		}
		return err
	})
}

// recordGrowth records how far a file has grown, if it is a log of a function.
func (r *Recorder) recordGrowth(path string, before bool) error {
	cid, ok := functionFileCID(filepath.Base(path))
	if !ok {
		return nil
	}
	info, err := os.Stat(path)
	if err != nil {
		return err
	}
	log, known := r.logs[path]
	if !known {
		dir := filepath.Dir(path)
		log = &recordedLog{cid: cid, function: invocation.FunctionKey{Namespace: filepath.Base(filepath.Dir(dir)), Name: filepath.Base(dir)}}
		times, err := readTimeline(filepath.Join(dir, TimesFile(cid)))
		if err != nil {
			return err
		}
		log.stamps = int64(len(times))
		if len(times) > 0 {
			log.last = times[len(times)-1]
		}
		if log.read = log.last.offset; before {
			log.read = info.Size()
		}
		r.logs[path] = log
	}
	at := r.deps.Now()
	if before {
		at = info.ModTime()
	}
	if err := log.stamp(filepath.Join(filepath.Dir(path), TimesFile(cid)), stamp{info.Size(), at}); err != nil {
		return err
	}
	return r.emitLines(log, path, info.Size(), at)
}

// stamp records a time if the log has grown.
func (l *recordedLog) stamp(path string, s stamp) error {
	if s.offset <= l.last.offset {
		return nil
	}
	place := l.stamps
	if l.stamps > 0 && s.at.Sub(l.last.at) < stampEvery {
		place, s.at = l.stamps-1, l.last.at
	}
	file, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer file.Close()
	if _, err := file.WriteAt(s.encode(), place*stampBytes); err != nil {
		return err
	}
	l.stamps, l.last = place+1, s
	return nil
}

// emitLines hands on the lines that have ended.
func (r *Recorder) emitLines(l *recordedLog, path string, size int64, at time.Time) error {
	if r.deps.OnLine == nil || size <= l.read {
		return nil
	}
	file, err := os.Open(path)
	if err != nil {
		return err
	}
	defer file.Close()
	chunk := make([]byte, min(size-l.read, chunkBytes))
	for l.read < size {
		n, err := file.ReadAt(chunk[:min(size-l.read, chunkBytes)], l.read)
		l.read += int64(n)
		l.partial = append(l.partial, chunk[:n]...)
		for {
			line, rest, ended := bytes.Cut(l.partial, []byte("\n"))
			if !ended && len(line) < chunkBytes {
				break
			}
			r.deps.OnLine(Line{Function: l.function, CID: l.cid, At: at, Text: string(line)})
			l.partial = rest
		}
		if err != nil && !errors.Is(err, io.EOF) || n == 0 {
			return err
		}
	}
	return nil
}
