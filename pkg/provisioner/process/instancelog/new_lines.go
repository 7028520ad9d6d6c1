package instancelog

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"os"
	"time"
)

// newLines reads the new part of a log, line by line.
type newLines struct {
	file   *followedLog
	log    *os.File
	size   int64
	lines  *bufio.Reader
	times  timeline
	latest time.Time
	// line is the current one, without its end, and at when it was written.
	line []byte
	at   time.Time
}

// openNewLines reads a log from where it was printed to. Lines that have no time yet
// are given the latest.
func openNewLines(file *followedLog, log *os.File, size int64, times timeline, latest time.Time) *newLines {
	part := io.NewSectionReader(log, file.offset, size-file.offset)
	return &newLines{file: file, log: log, size: size, lines: bufio.NewReaderSize(part, chunkBytes), times: times, latest: latest}
}

func (g *newLines) close() { _ = g.log.Close() }

// nextLine advances to the next line, or to a piece of a line that is too long to wait for its
// end; false if there is none. An unfinished line stays in the file.
func (g *newLines) nextLine() (bool, error) {
	line, err := g.lines.ReadSlice('\n')
	end := g.file.offset + int64(len(line))
	at, known := g.times.timeOf(end)
	if !known {
		at = g.latest
	}
	switch {
	case errors.Is(err, io.EOF):
		g.file.size, g.file.partial, g.file.written = g.size, bytes.Clone(line), at
		return false, nil
	case err != nil && !errors.Is(err, bufio.ErrBufferFull):
		return false, err
	}
	g.file.offset, g.file.size = end, end
	g.line, g.at = bytes.TrimSuffix(line, []byte("\n")), at
	return true, nil
}
