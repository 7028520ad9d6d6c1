package instancelog

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/windlass-dev/windlass/pkg/invocation"
)

const (
	// interval is how often Follow looks for new lines.
	interval = 200 * time.Millisecond
	// chunkBytes is how much is read at a time, and the length at which a
	// line is printed in pieces.
	chunkBytes = 64 << 10
)

// Options say what Follow prints.
type Options struct {
	// Follow continues with new lines and new instances until the context ends; otherwise only
	// existing lines are printed.
	Follow bool
	// Tail is how many existing lines are printed, the last ones of all instances together;
	// negative means all.
	Tail int
	// Since leaves out lines that were written before, if it is not zero.
	Since time.Time
	// Timestamps prints the time of each line before it.
	Timestamps bool
}

// Follow prints the lines that the instances of a function have written, in the order of their
// times, each after its instance's id. dataDir is the driver's data folder. It returns nil
// when ctx ends, and an error if w or a file fails, or if there are no logs and Options.Follow
// is not set. Before it waits for new lines it writes no bytes to w, so w knows that it follows even
// if there are no lines.
func Follow(ctx context.Context, w io.Writer, dataDir string, key invocation.FunctionKey, opts Options) error {
	f := newFollower(w, Dir(dataDir, key), opts)
	if err := f.step(); err != nil {
		return err
	}
	if !opts.Follow {
		if len(f.files) == 0 {
			return fmt.Errorf("no instance of %s has written a log below %s: call the function first", key, dataDir)
		}
		return f.flush()
	}
	if _, err := f.w.Write(nil); err != nil {
		return err
	}
	ticker := time.NewTicker(interval)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			if err := f.step(); err != nil {
				return err
			}
			return f.flush()
		case <-ticker.C:
			if err := f.step(); err != nil {
				return err
			}
		}
	}
}

// follower remembers how far each log was printed.
type follower struct {
	w    io.Writer
	dir  string
	opts Options
	now  func() time.Time
	// stepped says that lines from now on are new.
	stepped bool
	files   map[invocation.CID]*followedLog
	buffer  []byte
}

// followedLog is one log.
type followedLog struct {
	cid invocation.CID
	// offset is where the first line begins that was not printed, and size is
	// that of the log when it was read last.
	offset, size int64
	// partial is the beginning of the line at offset, whose end was not yet read,
	// and written when it was.
	partial []byte
	written time.Time
}

func newFollower(w io.Writer, dir string, opts Options) *follower {
	return &follower{
		w: w, dir: dir, opts: opts, now: time.Now,
		files:  map[invocation.CID]*followedLog{},
		buffer: make([]byte, chunkBytes),
	}
}

// step prints the lines since the last step. Only the first step applies tail and since: a log
// that appears later is new from its first line on.
func (f *follower) step() error {
	entries, err := os.ReadDir(f.dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("instancelog: %w", err)
	}
	gone := maps.Clone(f.files)
	var grown []*newLines
	defer func() {
		for _, g := range grown {
			g.close()
		}
	}()
	for _, e := range entries {
		cid, ok := functionFileCID(e.Name())
		if !ok {
			continue
		}
		delete(gone, cid)
		g, err := f.readNew(cid)
		if err != nil {
			return fmt.Errorf("instancelog: %w", err)
		}
		if g != nil {
			grown = append(grown, g)
		}
	}
	for _, cid := range slices.Sorted(maps.Keys(gone)) {
		if err := f.flushOne(gone[cid]); err != nil {
			return err
		}
		delete(f.files, cid)
	}
	keep := -1
	if !f.stepped {
		keep = f.opts.Tail
	}
	f.stepped = true
	return f.merge(grown, keep)
}

// readNew returns the new lines of a log; nil if it has none.
func (f *follower) readNew(cid invocation.CID) (*newLines, error) {
	log, err := os.Open(filepath.Join(f.dir, FunctionFile(cid)))
	if errors.Is(err, fs.ErrNotExist) {
		// It was deleted just now; the next step finds it gone.
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	info, err := log.Stat()
	if err != nil {
		return nil, errors.Join(err, log.Close())
	}
	file, known := f.files[cid]
	size := info.Size()
	switch {
	case !known:
		file = &followedLog{cid: cid}
		f.files[cid] = file
	case size == file.size:
		return nil, log.Close()
	case size < file.size:
		// Another file took its place.
		*file = followedLog{cid: cid}
	}
	times, err := readTimeline(filepath.Join(f.dir, TimesFile(cid)))
	if err != nil {
		return nil, errors.Join(err, log.Close())
	}
	if !known && !f.stepped {
		if file.offset, err = f.startOffset(log, size, times, info.ModTime()); err != nil {
			return nil, errors.Join(err, log.Close())
		}
	}
	latest := info.ModTime()
	if f.stepped {
		latest = f.now()
	}
	return openNewLines(file, log, size, times, latest), nil
}

// startOffset is where the first line is that may be printed at all.
func (f *follower) startOffset(log io.ReaderAt, size int64, times timeline, modified time.Time) (offset int64, err error) {
	if !f.opts.Since.IsZero() {
		offset = times.offsetSince(f.opts.Since)
		if len(times) == 0 && modified.Before(f.opts.Since) {
			offset = size
		}
	}
	if f.opts.Tail >= 0 {
		last, err := tailOffset(log, size, f.opts.Tail, f.buffer)
		return max(offset, last), err
	}
	return offset, nil
}

// merge prints new lines in the order of time, but only the last keep ones if that is not
// negative.
func (f *follower) merge(grown []*newLines, keep int) error {
	var last []string
	var rest []*newLines
	for _, g := range grown {
		more, err := g.nextLine()
		if err != nil {
			return fmt.Errorf("instancelog: %w", err)
		}
		if more {
			rest = append(rest, g)
		}
	}
	for len(rest) > 0 {
		first := slices.MinFunc(rest, func(a, b *newLines) int {
			return cmp.Or(a.at.Compare(b.at), cmp.Compare(a.file.cid, b.file.cid))
		})
		text := f.render(first.file.cid, first.at, first.line)
		if keep < 0 {
			if _, err := io.WriteString(f.w, text); err != nil {
				return err
			}
		} else if last = append(last, text); len(last) > 2*keep {
			last = append(last[:0], last[len(last)-keep:]...)
		}
		more, err := first.nextLine()
		if err != nil {
			return fmt.Errorf("instancelog: %w", err)
		}
		if !more {
			rest = slices.DeleteFunc(rest, func(g *newLines) bool { return g == first })
		}
	}
	for _, text := range last[max(0, len(last)-max(keep, 0)):] {
		if _, err := io.WriteString(f.w, text); err != nil {
			return err
		}
	}
	return nil
}

// Time is how times are written before lines: in UTC, to the millisecond.
const Time = "2006-01-02T15:04:05.000Z"

func (f *follower) render(cid invocation.CID, at time.Time, line []byte) string {
	text := fmt.Sprintf("%s | %s\n", cid, line)
	if f.opts.Timestamps {
		return at.UTC().Format(Time) + " " + text
	}
	return text
}

// flush prints the lines that have no end.
func (f *follower) flush() error {
	for _, cid := range slices.Sorted(maps.Keys(f.files)) {
		if err := f.flushOne(f.files[cid]); err != nil {
			return err
		}
	}
	return nil
}

func (f *follower) flushOne(file *followedLog) error {
	if len(file.partial) == 0 {
		return nil
	}
	line := file.partial
	file.offset, file.partial = file.size, nil
	_, err := io.WriteString(f.w, f.render(file.cid, file.written, line))
	return err
}

// tailOffset is where the last n lines of a log of the given size begin. A
// line without an end counts.
func tailOffset(log io.ReaderAt, size int64, n int, buffer []byte) (int64, error) {
	if n == 0 {
		return size, nil
	}
	// The newline at the very end ends the last line and begins none.
	end := max(0, size-1)
	for end > 0 {
		chunk := buffer[:min(end, int64(len(buffer)))]
		start := end - int64(len(chunk))
		if _, err := log.ReadAt(chunk, start); err != nil {
			return 0, err
		}
		for i := len(chunk) - 1; i >= 0; i-- {
			if chunk[i] != '\n' {
				continue
			}
			if n--; n == 0 {
				return start + int64(i) + 1, nil
			}
		}
		end = start
	}
	return 0, nil
}
