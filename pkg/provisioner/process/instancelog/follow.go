package instancelog

import (
	"bytes"
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

	"github.com/windlass-dev/windlass/pkg/invoke"
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
	// Follow goes on with new lines and new instances until the context
	// ends; otherwise what is there is printed.
	Follow bool
	// Tail is how many of the last lines that are there already are printed
	// for each instance; negative means all of them.
	Tail int
}

// Follow prints the lines that the instances of a function have written, in
// the order of their ids, each line behind its instance's id. dataDir is the
// runtime's data folder. It returns nil when ctx ends, and an error if w or a
// file fails, or if there is nothing to print and Options.Follow is not set.
func Follow(ctx context.Context, w io.Writer, dataDir string, key invoke.FunctionKey, opts Options) error {
	f := newFollower(w, Dir(dataDir, key), opts.Tail)
	if err := f.step(); err != nil {
		return err
	}
	if !opts.Follow {
		if len(f.files) == 0 {
			return fmt.Errorf("instancelog: no instance of %s has written a log below %s: call the function first", key, dataDir)
		}
		return f.flush()
	}
	ticker := time.NewTicker(interval)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
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
	tail int
	// stepped says that what is found from now on is new.
	stepped bool
	files   map[invoke.CID]*followed
	buffer  []byte
}

// followed is one log.
type followed struct {
	// offset is how many bytes were read.
	offset int64
	// partial is the beginning of a line whose end was not yet read.
	partial []byte
}

func newFollower(w io.Writer, dir string, tail int) *follower {
	return &follower{
		w: w, dir: dir, tail: tail,
		files:  map[invoke.CID]*followed{},
		buffer: make([]byte, chunkBytes),
	}
}

// step prints what was written since the last step. Only the first one heeds
// tail: a log that appears later is new from its first line on.
func (f *follower) step() error {
	entries, err := os.ReadDir(f.dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("instancelog: %w", err)
	}
	gone := make(map[invoke.CID]bool, len(f.files))
	for cid := range f.files {
		gone[cid] = true
	}
	for _, e := range entries {
		cid, ok := functionFileCID(e.Name())
		if !ok {
			continue
		}
		info, err := e.Info()
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return fmt.Errorf("instancelog: %w", err)
		}
		delete(gone, cid)
		if err := f.grow(cid, info.Size()); err != nil {
			return err
		}
	}
	for cid := range gone {
		if err := f.flushOne(cid); err != nil {
			return err
		}
		delete(f.files, cid)
	}
	f.stepped = true
	return nil
}

// grow prints what is new in a log of the given size.
func (f *follower) grow(cid invoke.CID, size int64) error {
	file, known := f.files[cid]
	if known && size == file.offset {
		return nil
	}
	log, err := os.Open(filepath.Join(f.dir, FunctionFile(cid)))
	if errors.Is(err, fs.ErrNotExist) {
		// It was deleted just now; the next step finds it gone.
		return nil
	}
	if err != nil {
		return fmt.Errorf("instancelog: %w", err)
	}
	defer log.Close()
	switch {
	case !known:
		file = &followed{}
		f.files[cid] = file
		if !f.stepped && f.tail >= 0 {
			if file.offset, err = tailOffset(log, size, f.tail, f.buffer); err != nil {
				return fmt.Errorf("instancelog: %w", err)
			}
		}
	case size < file.offset:
		// Another file took its place.
		*file = followed{}
	}
	return f.copyLines(cid, file, io.NewSectionReader(log, file.offset, size-file.offset))
}

func (f *follower) copyLines(cid invoke.CID, file *followed, from io.Reader) error {
	for {
		n, err := from.Read(f.buffer)
		file.offset += int64(n)
		file.partial = append(file.partial, f.buffer[:n]...)
		if printErr := f.printLines(cid, file); printErr != nil {
			return printErr
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("instancelog: %w", err)
		}
	}
}

// printLines prints the complete lines of what was read, and what is too long
// to wait for its end.
func (f *follower) printLines(cid invoke.CID, file *followed) error {
	rest := file.partial
	for {
		line, after, complete := bytes.Cut(rest, []byte("\n"))
		if !complete {
			break
		}
		if err := f.print(cid, line); err != nil {
			return err
		}
		rest = after
	}
	if len(rest) >= chunkBytes {
		if err := f.print(cid, rest); err != nil {
			return err
		}
		rest = nil
	}
	file.partial = append(file.partial[:0], rest...)
	return nil
}

func (f *follower) print(cid invoke.CID, line []byte) error {
	_, err := fmt.Fprintf(f.w, "%s | %s\n", cid, line)
	return err
}

// flush prints the lines that have no end.
func (f *follower) flush() error {
	for _, cid := range slices.Sorted(maps.Keys(f.files)) {
		if err := f.flushOne(cid); err != nil {
			return err
		}
	}
	return nil
}

func (f *follower) flushOne(cid invoke.CID) error {
	file := f.files[cid]
	if len(file.partial) == 0 {
		return nil
	}
	line := file.partial
	file.partial = nil
	return f.print(cid, line)
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
